package node

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

var _ component.Recordable = (*Component)(nil)

// maxRecordedState is the largest state that a recording begins with, in bytes of
// JSON.
const maxRecordedState = 256 << 10

// Record calls f with the answers of external systems to the node's instances.
func (c *Component) Record(f func(component.Answer)) (stop func(), err error) {
	stop, ok := c.mem.recorder.Start(f)
	if !ok {
		return nil, fmt.Errorf("somebody else records %s; try again when that has ended", c.opts.ID)
	}
	for _, a := range c.world.Beginning() {
		f(a)
	}
	return stop, nil
}

// RecordedState returns ctx.state by name.
func (c *Component) RecordedState() (map[string]any, error) {
	v := c.stateView()
	all := map[string]any{}
	size := 0
	for _, s := range v.Summaries() {
		if s.Entries == 0 {
			continue
		}
		var text bytes.Buffer
		if s.Bytes <= maxRecordedState {
			if err := v.Get(&text, s.Name, nil); err != nil {
				return nil, err
			}
			size += text.Len()
		} else {
			size += int(s.Bytes)
		}
		if size > maxRecordedState {
			return nil, fmt.Errorf("cannot record %s: its state has more than %d KiB", c.opts.ID, maxRecordedState>>10)
		}
		var value any
		d := json.NewDecoder(&text)
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("cannot read the state %s of %s: %w", s.Name, c.opts.ID, err)
		}
		all[s.Name] = value
	}
	return all, nil
}

func (c *Component) stateView() *host.StateView {
	return &host.StateView{Node: c.opts.ID, Cols: c.state.collections(), Now: c.opts.Clock.Now().UnixMilli()}
}

// StateOf returns the content of a piece of the node's state, for tests: for a
// map the values by key, for a set a sorted list of keys, for a queue a list of
// values.
func (c *Component) StateOf(name string) (scripting.Value, error) { return c.stateView().All(name) }

// SetStateOf replaces the content of a piece of the node's state, for tests. The
// content is as StateOf returns it.
func (c *Component) SetStateOf(name string, content scripting.Value) error {
	defer c.state.flush()
	return c.stateView().Fill(name, content)
}
