package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// The limits of the history of reloads.
const (
	maxReloads       = 100     // records
	maxReloadEvents  = 500     // events
	maxReloadNodes   = 50      // nodes and files of a record
	maxReloadMessage = 1 << 10 // bytes of the message of a node
	maxFollowed      = 20      // changes that a record follows
)

// change is what the worker is doing, for its record.
type change struct {
	id      uint64 // of its record; 0 until there is one
	trigger service.Trigger
	follows []*change // whose trials or calls took long and end with this one
	steps   map[string]time.Duration
	waited  time.Duration      // for trials
	swaps   map[string]swapped // by node
	began   bool               // there are trials that it does not wait for
}

// swapped is a version that took the place of another.
type swapped struct{ from, to string }

func newChange(kind string, files []string) *change {
	return &change{
		trigger: service.Trigger{Kind: kind, Files: files[:min(len(files), maxReloadNodes)]},
		steps:   map[string]time.Duration{}, swaps: map[string]swapped{},
	}
}

// next returns the change to record after c, whose trigger is the same. It is c itself if
// that has no record yet.
func (c *change) next() *change {
	if c.id == 0 {
		return c
	}
	return following([]*change{c})
}

// following returns the change that is made when a trial or a call of others has ended.
func following(cs []*change) *change {
	c := newChange(cs[0].trigger.Kind, cs[0].trigger.Files)
	c.follow(cs)
	return c
}

// follow notes that the trial or the call of others has ended, which detected and compiled
// the new versions.
func (c *change) follow(cs []*change) {
	c.follows = adopt(c.follows, cs)
	for _, f := range c.follows {
		for _, step := range []string{stepDetect, component.StepCompile} {
			if took := max(c.steps[step], f.steps[step]); took > 0 {
				c.steps[step] = took
			}
		}
	}
}

// adopt adds changes to a list that is bounded.
func adopt(list, cs []*change) []*change {
	for _, c := range cs {
		if len(list) < maxFollowed && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// waiting are the changes that are complete when a trial or a call that this change
// begins has ended.
func (c *change) waiting() []*change { return append(slices.Clone(c.follows), c) }

// since adds the time since start to a step.
func (c *change) since(step string, start time.Time) { c.steps[step] += time.Since(start) }

// planning returns a function to call when a plan has been made: all of the time that
// nothing was compiled and no trial was waited for is that of the step check.
func (c *change) planning() (done func()) {
	start, other := time.Now(), c.steps[component.StepCompile]+c.waited
	return func() {
		c.steps[component.StepCheck] += time.Since(start) - (c.steps[component.StepCompile] + c.waited - other)
	}
}

// swapping returns a function to call when versions were replaced: all of the time in
// which nothing was built is that of the step swap.
func (c *change) swapping() (done func()) {
	start, built := time.Now(), c.steps[component.StepBuild]
	return func() {
		c.steps[stepSwap] += time.Since(start) - (c.steps[component.StepBuild] - built)
	}
}

// tried notes how long the steps of a trial took.
func (c *change) tried(steps map[string]time.Duration) {
	for step, took := range steps {
		c.steps[step] = max(c.steps[step], took)
	}
}

// history is what is kept of reloads, for other goroutines.
type history struct {
	mu      sync.Mutex
	reloads []service.Reload
	last    uint64 // ID of the last record
	events  []service.ReloadEvent
	event   uint64        // ID of the last event
	more    chan struct{} // closed at the next event; nil while nobody waits
	trials  map[string]*service.Trial
}

// Reloads returns the last changes, oldest first.
func (e *Engine) Reloads() []service.Reload {
	e.history.mu.Lock()
	defer e.history.mu.Unlock()
	return slices.Clone(e.history.reloads)
}

// ReloadEvents returns the events after an ID, and a channel that is closed when there
// are more.
func (e *Engine) ReloadEvents(after uint64) ([]service.ReloadEvent, <-chan struct{}) {
	h := &e.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.more == nil {
		h.more = make(chan struct{})
	}
	i, _ := slices.BinarySearchFunc(h.events, after+1, func(ev service.ReloadEvent, id uint64) int { return int(ev.ID) - int(id) })
	return slices.Clone(h.events[i:]), h.more
}

// add adds an event. The caller holds mu.
func (h *history) add(ev service.ReloadEvent) {
	h.event++
	ev.ID = h.event
	if h.events = append(h.events, ev); len(h.events) > maxReloadEvents {
		h.events = slices.Delete(h.events, 0, len(h.events)-maxReloadEvents)
	}
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

// keep keeps the record of a change and gives it an ID.
func (h *history) keep(c *change, r *service.Reload) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	if r.ID = h.last; c.id == 0 {
		c.id = r.ID
	} else { // the config was refused, the scripts were not
		r.Follows = append(r.Follows, c.id)
	}
	for _, f := range c.follows {
		if f.id != 0 {
			r.Follows = append(r.Follows, f.id)
		}
	}
	if h.reloads = append(h.reloads, *r); len(h.reloads) > maxReloads {
		h.reloads = slices.Delete(h.reloads, 0, len(h.reloads)-maxReloads)
	}
	h.add(service.ReloadEvent{Time: r.Time, Reload: r})
}

// of returns the records of a change, as far as they are kept: its own, and those of the
// outcome of its trials and calls.
func (h *history) of(c *change) (out []service.Reload) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.reloads {
		if c.id != 0 && (r.ID == c.id || slices.Contains(r.Follows, c.id)) {
			out = append(out, r)
		}
	}
	return out
}

// begin notes a step of a node's trial. It does not when is is nil: the trial has
// ended, whose last step was was.
func (h *history) begin(node string, was, is *service.Trial) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if is != nil {
		h.trials[node] = is
		h.add(service.ReloadEvent{Time: is.Since, Node: node, Trial: is})
	} else if h.trials[node] == was {
		delete(h.trials, node)
	}
}

// trialOf returns the step of a node's trial; nil without.
func (h *history) trialOf(node string) *service.Trial {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trials[node]
}

// record keeps the record of the change that the worker has made or refused.
func (e *Engine) record(c counts, outcome, message string, took time.Duration) *service.Reload {
	r := &service.Reload{
		Time: e.clock.Now(), Seconds: took.Seconds(), Trigger: e.change.trigger, Outcome: outcome,
		Message: component.HideURLs(component.Shorten(message)), Steps: map[string]float64{}, Nodes: []service.ReloadNode{},
	}
	for step, took := range e.change.steps {
		r.Steps[step] = took.Seconds()
	}
	seen := map[string]bool{}
	add := func(n service.ReloadNode) {
		if seen[n.ID] {
			return
		}
		if seen[n.ID] = true; len(r.Nodes) >= maxReloadNodes {
			r.Omitted++
			return
		}
		if s := e.change.swaps[n.ID]; n.From == "" && n.To == "" {
			n.From, n.To = s.from, s.to
		}
		r.Nodes = append(r.Nodes, n)
	}
	for _, id := range c.results[failed] {
		if n := e.nodes[id]; n != nil && n.failed != nil {
			add(n.failedNode())
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.tried)) {
		if t := e.tried[id]; !t.ended() {
			n := service.ReloadNode{ID: id, Action: "in progress", To: t.reg.Version}
			if now := e.history.trialOf(id); now != nil {
				n.Step = now.Step
			}
			if node := e.nodes[id]; node != nil && node.current != nil {
				n.From = node.current.reg.Version
			}
			add(n)
		}
	}
	action := func(action string, ids []string) {
		for _, id := range ids {
			add(service.ReloadNode{ID: id, Action: action})
		}
	}
	action("in progress", c.results[inProgress])
	action("added", c.added)
	action("rebuilt", c.results[rebuilt])
	action("updated", c.results[updated])
	action("removed", c.removed)
	r.Rebuilt = len(c.results[rebuilt])
	r.Untouched = e.untouched(c)
	e.history.keep(e.change, r)
	return r
}

// failedNode is the node in a record, with why it fails.
func (n *node) failedNode() service.ReloadNode {
	text := component.HideURLs(n.failed.Error())
	if len(text) > maxReloadMessage {
		text = strings.ToValidUTF8(text[:maxReloadMessage], "") + "…"
	}
	out := service.ReloadNode{ID: n.id, Action: "failed", Message: text}
	if n.current != nil {
		out.From = n.current.reg.Version
	}
	if r, ok := errors.AsType[*refusedError](n.failed); ok {
		out.Action, out.From, out.To, out.Step = "refused", r.running, r.version, r.step
	}
	return out
}

// The steps of a change in which no version can be refused.
const (
	stepDetect = "detect" // from the first change of a file until the worker knows all of them
	stepSwap   = "swap"   // puts new versions in the place of old ones
)

// reloadSteps are the steps of a change in the order in which they take place.
var reloadSteps = []string{stepDetect, component.StepCompile, component.StepCheck, component.StepTest,
	component.StepShadow, component.StepCanary, component.StepBuild, stepSwap}

// stepList is how long each step took that took a millisecond.
func (c *change) stepList() string {
	var out []string
	for _, step := range reloadSteps {
		if took := c.steps[step]; took >= time.Millisecond {
			out = append(out, step+" "+milliseconds(took))
		}
	}
	return strings.Join(out, ", ")
}

// total is how long a change took from the first change of a file on, if the worker took
// that long.
func (c *change) total(took time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, step := range c.steps {
		sum += step
	}
	return max(took+c.steps[stepDetect], sum)
}

// line is the line of a change that was made. If it replaced versions of scripts, or nodes
// have read changed files, the line also has these, the files that changed, and how long
// the steps took.
func (e *Engine) line(what string, took time.Duration, did counts) string {
	c := e.change
	var nodes []string
	for _, id := range did.results[rebuilt] {
		if s := c.swaps[id]; s.from != "" && s.from != s.to {
			nodes = append(nodes, fmt.Sprintf("%s %s → %s", id, component.ShortVersion(s.from), component.ShortVersion(s.to)))
		}
	}
	if len(nodes) == 0 && !did.read {
		return fmt.Sprintf("%s (%s), %s", what, milliseconds(took), did)
	}
	steps := milliseconds(c.total(took))
	if list := c.stepList(); list != "" {
		steps += ": " + list
	}
	line := fmt.Sprintf("%s (%s), %s, %d untouched", what, steps, did, e.untouched(did))
	if len(nodes) > 0 {
		line += "; " + listed(nodes)
	}
	if len(c.trigger.Files) > 0 {
		names := make([]string, len(c.trigger.Files))
		for i, f := range c.trigger.Files {
			names[i] = nearby(f)
		}
		line += "; changed: " + listed(names)
	}
	return line
}

// untouched returns how many nodes a change did not touch.
func (e *Engine) untouched(c counts) int {
	touched := map[string]bool{}
	for _, ids := range [][]string{c.added, c.results[rebuilt], c.results[updated], c.results[failed], c.results[inProgress]} {
		for _, id := range ids {
			touched[id] = e.nodes[id] != nil
		}
	}
	for id, t := range e.tried {
		if !t.ended() {
			touched[id] = e.nodes[id] != nil
		}
	}
	n := c.nodes
	for _, counted := range touched {
		if counted {
			n--
		}
	}
	return max(0, n)
}

// maxShown is how many nodes and files the line of a change names.
const maxShown = 3

func listed(names []string) string {
	if more := len(names) - maxShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
