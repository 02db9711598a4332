package scripttest

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/registry"
)

// PromptOptions are the options of NewPrompt.
type PromptOptions struct {
	// Options are those of the script: Languages, Modules, Embedded and Dir.
	Options
	// Node is the name of a node and Component that of its script. Without a script,
	// statements are in Language and have an empty component.
	Node, Component string
	Language        string
	// Args are the arguments of the node and State is its ctx.state, as in a Recording.
	Args  map[string]any
	State map[string]any
	// Batch is a batch in text form. If it is empty, Input is the batch if it is set.
	Batch string
	Input func(accepts batch.Signals) (Input, error)
	// Print is called with each line that the script prints or logs.
	Print func(line string)
	// Time is the limit of CPU time for one statement.
	Time time.Duration
	// Allow lets the statements reach what the node may reach outside of weir.
	Allow     bool
	LookupEnv func(name string) (value string, ok bool)
}

// Prompt evaluates statements with the script, the arguments, the grants and the state of
// a node.
type Prompt struct {
	*node.Prompt
	// Language is the name of the language of the statements.
	Language string
	// Setup is the error of the hook setup, and StateError why ctx.state does not have
	// the content of the node's.
	Setup, StateError error

	parsed *testNode // has the series of the batch
}

// Close releases the VM.
func (p *Prompt) Close() {
	p.Prompt.Close()
	p.parsed.releaseSeries()
}

//go:embed prompt
var promptScripts embed.FS

// NewPrompt returns a prompt. The caller closes it.
func NewPrompt(ctx context.Context, o PromptOptions) (*Prompt, error) {
	reg, err := o.registration()
	if err != nil {
		return nil, err
	}
	p := &Prompt{parsed: &testNode{
		name: o.Node, clock: testClock{clocktest.New(time.Now().Truncate(time.Second))}, source: batch.NewSource(), series: map[string]*batch.Series{},
		accepts: batch.SignalMetrics | batch.SignalLogs,
	}}
	in, err := o.batch(p.parsed, reg)
	if err != nil {
		return nil, err
	}
	c, err := o.component(reg)
	if err != nil {
		return nil, err
	}
	for _, l := range o.Languages {
		if slices.Contains(l.Extensions(), filepath.Ext(c.File().Name)) {
			p.Language = l.Name()
		}
	}
	p.StateError = setStates(c, o.State)
	p.Prompt, p.Setup, err = node.NewPrompt(ctx, c, node.PromptOptions{Metrics: in.metrics, Logs: in.logs, Log: o.log, Time: o.Time})
	return p, err
}

// registration returns the component.
func (o PromptOptions) registration() (reg component.Registration, err error) {
	dir, err := filepath.Abs(cmp.Or(o.Dir, defaultDir))
	if err != nil {
		return reg, err
	}
	name, embedded := o.Component, o.Embedded
	if name == "" {
		if embedded, err = fs.Sub(promptScripts, "prompt"); err != nil {
			return reg, err
		}
		name = "repl." + o.Language
	}
	made, err := registry.NewCatalog(registry.Options{
		Languages: o.Languages, Modules: o.Modules, Embedded: embedded, UserDir: dir,
	})
	if err != nil {
		return reg, err
	}
	outside := host.Outside{Manual: true, LookupEnv: o.LookupEnv}
	if !o.Allow {
		closed := &closedOutside{refusal: errPromptOutside}
		outside.HTTP, outside.ReadFile, outside.Exec, outside.LookupEnv = closed, closed.readFile, closed.exec, closed.lookupEnv
	}
	reg, ok := registry.WithOutside(made, outside).Lookup(name)
	switch {
	case !ok:
		return reg, fmt.Errorf("cannot find the script of %s: there is no script %s in %s; name the folder of scripts with --scripts", o.Node, name, display(dir))
	case reg.Err != nil:
		return reg, reg.Err
	}
	return reg, nil
}

// errPromptOutside is why a statement could not reach something outside of weir.
var errPromptOutside = errors.New("weir repl does not reach anything outside of weir; --allow permits what the node may reach")

// batch reads the batch of the statements. A batch of samples is preferred to one of
// lines.
func (o PromptOptions) batch(n *testNode, reg component.Registration) (in input, err error) {
	if strings.TrimSpace(o.Batch) != "" {
		samples, logs := sorted(o.Batch, n.accepts)
		if !onlyComments(samples) {
			in.metrics, err = n.parse(samples)
		} else if strings.TrimSpace(logs) != "" {
			in.logs, err = n.parseLogs(logs)
		}
		return in, err
	}
	if o.Input == nil {
		return in, nil
	}
	given, err := o.Input(cmp.Or(reg.Accepts, n.accepts))
	if err != nil {
		return in, err
	}
	n.accepts = cmp.Or(reg.Accepts, n.accepts)
	return n.readInput(given, o.Modules)
}

// component builds the component, without running it.
func (o PromptOptions) component(reg component.Registration) (*node.Component, error) {
	given := maps.Clone(o.Args)
	delete(given, "forward_to")
	n := &testNode{}
	body, err := attributes(valueOf(withoutDefaults(given, defaultsOf(reg))), config.Describe(reg.NewArgs()))
	if err != nil {
		return nil, err
	}
	sink := flow.NewReceiver("prompt", batch.SignalMetrics|batch.SignalLogs, nil, nil)
	sink.Set(n)
	args, err := decode(reg, body, noPosition, sink, n.outputSinks(reg))
	if err != nil {
		return nil, unplaced(err)
	}
	made, err := reg.Build(component.Options{
		ID: cmp.Or(o.Node, reg.Name), Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), UserAgent: "weir/repl",
		Clock: clock.System{}, Stats: new(flow.Stats), Export: func(any) {}, Health: func(component.Health) {},
		Service: func(s string) (any, error) { return nil, fmt.Errorf("there is no service %q at a prompt", s) },
	}, args, nil)
	if err != nil {
		return nil, err
	}
	c, ok := made.(*node.Component)
	if !ok {
		return nil, fmt.Errorf("cannot evaluate statements for %s: it does not run a script", reg.Name)
	}
	return c, nil
}

// setStates fills ctx.state of a component.
func setStates(c *node.Component, all map[string]any) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v := valueOf(all[name]); v != nil {
			errs = append(errs, c.SetStateOf(name, v))
		}
	}
	return errors.Join(errs...)
}

// log prints the message of a script with its fields, after its level unless it is info.
func (o PromptOptions) log(level slog.Level, _, msg string, fields []any) {
	if level != slog.LevelInfo {
		msg = strings.ToLower(level.String()) + ": " + msg
	}
	for i := 0; i+1 < len(fields); i += 2 {
		msg += fmt.Sprintf(" %v=%v", fields[i], fields[i+1])
	}
	o.Print(msg)
}
