package http

import (
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// Status is the response of /api/v0/status to callers with credentials. It
// contains no secrets.
type Status struct {
	Time    time.Time `json:"time"` // of this response
	Version string    `json:"version"`
	Config  string    `json:"config"`
	// ConfigError is why the config on disk was refused, while an older one runs.
	ConfigError string    `json:"config_error,omitempty"`
	Started     time.Time `json:"started"`
	Ready       bool      `json:"ready"`
	Stopping    bool      `json:"stopping"`
	Reload      *Reload   `json:"reload"` // null before the first reload
	// Stalled are overdue operations of weir itself.
	Stalled []string `json:"stalled,omitempty"`
	// Allowed is what the block ui allows the caller.
	Allowed    Allowed `json:"allowed"`
	Services   []Node  `json:"services"`
	Components []Node  `json:"components"` // in config order
}

// Allowed is what the block ui allows a caller.
type Allowed struct {
	LiveData bool `json:"live_data"` // to see records, and messages that may quote them
	Changes  bool `json:"changes"`   // to change what runs, such as the version of a script
	Edit     bool `json:"edit"`      // to write files
}

// PublicStatus is the response of /api/v0/status without credentials: the nodes
// and their states, as in /metrics. It contains no messages, addresses,
// arguments or data.
type PublicStatus struct {
	Time       time.Time    `json:"time"` // of this response
	Version    string       `json:"version"`
	Started    time.Time    `json:"started"`
	Ready      bool         `json:"ready"`
	Stopping   bool         `json:"stopping"`
	Services   []PublicNode `json:"services"`
	Components []PublicNode `json:"components"` // in config order
}

// PublicNode is one component or service.
type PublicNode struct {
	ID     string `json:"id"`
	Name   string `json:"name"` // of its block
	Health struct {
		State component.HealthState `json:"state"`
		Time  time.Time             `json:"time"` // since when
	} `json:"health"`
}

// Reload is the result of the last change.
type Reload struct {
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	Outcome string    `json:"outcome"` // applied, partial, refused
	Message string    `json:"message"`
}

// Node is one component or service.
type Node struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"` // of its block
	Health component.Health `json:"health"`
	// Problems are the reasons why it is unhealthy, with their start times.
	Problems  []component.Health `json:"problems,omitempty"`
	LastError *component.Health  `json:"last_error"` // null when there was none
	Position  string             `json:"position"`   // file:line of its block
	DependsOn []string           `json:"depends_on"`
	SendsTo   []string           `json:"sends_to"`
	Sources   []string           `json:"sources"` // script files
	Version   string             `json:"version"` // of the script
	// Trial is the current step of a new version, if there is one.
	Trial    *service.Trial `json:"trial,omitempty"`
	Builds   uint64         `json:"builds"` // since the node is there; not counted: arguments that it took while it ran
	Restarts uint64         `json:"restarts"`
	// Playground reports that a copy of it can run in the playground for blocks.
	Playground bool     `json:"playground,omitempty"`
	Samples    *Samples `json:"samples"`         // null for services
	Lines      *Samples `json:"lines,omitempty"` // log lines; missing when there were none
	// Quarantined is the number of samples and lines in quarantine.
	Quarantined int64 `json:"quarantined,omitempty"`
	// Arguments and Exports have at most 1000 elements of each list.
	Arguments any `json:"arguments"`
	Exports   any `json:"exports"`
	// Omitted is the number of omitted elements of lists in Arguments and Exports.
	Omitted int `json:"omitted,omitempty"`
	Debug   any `json:"debug"`
}

// Samples are the counts of samples, or of lines, since the node exists.
type Samples struct {
	In  uint64 `json:"in"`
	Out uint64 `json:"out"`
	// Sent and Waiting are set for a node that sends from a journal: the number
	// accepted by its endpoints, which equals Out, and the number that still
	// waits.
	Sent    *uint64           `json:"sent,omitempty"`
	Waiting *int64            `json:"waiting,omitempty"`
	Dropped map[string]uint64 `json:"dropped"` // by reason
}

// newSamples returns counts; waiting is used for a node with a journal.
func newSamples(in, out uint64, dropped map[string]uint64, journal bool, waiting int64) *Samples {
	s := &Samples{In: in, Out: out, Dropped: dropped}
	if journal {
		s.Sent, s.Waiting = &s.Out, &waiting
	}
	return s
}

func (s Samples) isEmpty() bool {
	return s.In == 0 && s.Out == 0 && len(s.Dropped) == 0 && (s.Waiting == nil || *s.Waiting == 0)
}

// maxElements is the maximum number of shown elements of a list, such as the
// targets of a scrape. Browsers request the status repeatedly, and it contains
// all nodes.
const maxElements = 1000

// maxStatusNodes is how many nodes one request for the status may name.
const maxStatusNodes = 100

func (s *Service) status(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	ids := r.URL.Query()["node"]
	switch {
	case len(ids) > maxStatusNodes:
		nethttp.Error(w, fmt.Sprintf("ask for at most %d nodes, not %d", maxStatusNodes, len(ids)), nethttp.StatusBadRequest)
	case callerOf(r).owner:
		out, a := newStatus(host, ids), s.allowed(r)
		out.Allowed = Allowed{a.LiveData, s.changesAllowed(r), a.Edit}
		writeJSON(w, out)
	default:
		writeJSON(w, newPublicStatus(host, ids))
	}
}

// newStatus returns the status with the nodes that have the given IDs, or with all nodes.
func newStatus(host service.Host, ids []string) Status {
	o := host.Overview()
	s := Status{
		Time: o.Time, Version: o.Version, Config: o.Config, ConfigError: o.ConfigError, Started: o.Started, Ready: o.Ready, Stopping: o.Stopping, Stalled: o.Stalled,
		Services: mapped(o.Services, ids, newNode), Components: mapped(host.ListComponents(), ids, newNode),
	}
	if r := o.Reload; r.Outcome != "" {
		s.Reload = &Reload{Time: r.Time, Seconds: r.Seconds, Outcome: r.Outcome, Message: r.Message}
	}
	return s
}

func newPublicStatus(host service.Host, ids []string) PublicStatus {
	o := host.Overview()
	node := func(i service.Info) (n PublicNode) {
		n.ID, n.Name = i.ID, i.Name
		n.Health.State, n.Health.Time = i.Health.State, i.Health.Time
		return n
	}
	return PublicStatus{
		Time: o.Time, Version: o.Version, Started: o.Started, Ready: o.Ready, Stopping: o.Stopping,
		Services: mapped(o.Services, ids, node), Components: mapped(host.ListComponents(), ids, node),
	}
}

// mapped returns a value for each node that has one of the IDs, or for all nodes without
// IDs.
func mapped[T any](infos []service.Info, ids []string, value func(service.Info) T) []T {
	out := []T{}
	for _, i := range infos {
		if len(ids) == 0 || slices.Contains(ids, i.ID) {
			out = append(out, value(i))
		}
	}
	return out
}

func newNode(i service.Info) Node {
	n := Node{
		ID: i.ID, Name: i.Name, Health: i.Health, Problems: i.Problems, Position: i.Position, DependsOn: list(i.DependsOn), SendsTo: list(i.SendsTo), Sources: []string{},
		Version: i.Version, Trial: i.Trial, Builds: i.Builds, Restarts: i.Restarts, Playground: i.Playground,
	}
	if i.Sources != nil {
		n.Sources = list(i.Sources())
	}
	if i.Debug != nil {
		n.Debug = marshal(i.Debug)
	}
	redact := func(v any) json.RawMessage {
		return marshal(func() any {
			shown, omitted := config.RedactUpTo(v, maxElements)
			n.Omitted += omitted
			return shown
		})
	}
	n.Arguments, n.Exports = redact(i.Arguments), redact(i.Exports)
	if i.LastError.State != component.Unknown {
		n.LastError = &i.LastError
	}
	if s, b := i.Stats, i.Backlog; s != nil {
		n.Samples = newSamples(s.In.Load(), s.Out.Load(), s.Dropped(), b.Journal, b.Samples)
		if lines := newSamples(s.LinesIn.Load(), s.LinesOut.Load(), s.DroppedLines(), b.Journal, b.Lines); !lines.isEmpty() {
			n.Lines = lines
		}
		n.Quarantined = b.Quarantined
	}
	return n
}

// list returns an empty list for nil, as clients expect.
func list(ss []string) []string { return append([]string{}, ss...) }

// marshal returns a component's value as JSON. A value that cannot be
// marshalled does not affect other components.
func marshal(value func() any) (out json.RawMessage) {
	defer func() {
		if v := recover(); v != nil {
			out, _ = json.Marshal(fmt.Sprintf("cannot be shown: %v", v))
		}
	}()
	out, err := json.Marshal(value())
	if err != nil {
		out, _ = json.Marshal("cannot be shown: " + err.Error())
	}
	return out
}
