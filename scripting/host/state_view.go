package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// StateView is the state of a node for inspection by the user.
type StateView struct {
	Node string
	Cols []*state.Collection
	Now  int64 // Unix ms
}

// StoredState returns the persistent state of a node from the storage directory
// of a weir that is not running. It changes nothing there.
func StoredState(storage, node string, now time.Time) (*StateView, error) {
	cols, err := state.Read(storage, node)
	return &StateView{Node: node, Cols: cols, Now: now.UnixMilli()}, err
}

// NoStateError means that a state, or a key, does not exist.
type NoStateError struct{ msg string }

func (e *NoStateError) Error() string { return e.msg }

func (v *StateView) find(name string) (*state.Collection, error) {
	var names []string
	for _, c := range v.Cols {
		if c.Decl().Name == name {
			return c, nil
		}
		names = append(names, c.Decl().Name)
	}
	what := "it has none"
	if len(names) > 0 {
		what = "there is " + strings.Join(names, ", ")
	}
	if hint := config.DidYouMean(name, names); hint != "" {
		what = hint
	}
	return nil, &NoStateError{fmt.Sprintf("cannot find state %q of %s: %s", name, v.Node, what)}
}

func (v *StateView) noKey(name, key string) error {
	return &NoStateError{fmt.Sprintf("cannot find key %q in state %s of %s", key, name, v.Node)}
}

// StoredNodes returns the nodes with persistent state in a storage directory,
// sorted. In case of an error, it returns the nodes that it found as well.
func StoredNodes(storage string) ([]string, error) { return state.Nodes(storage) }

// StateSummary is a piece of state without its entries.
type StateSummary struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Scope   string `json:"scope"`
	Entries int    `json:"entries"`
	Max     int    `json:"max"`
	Bytes   int64  `json:"bytes"`
	Most    int64  `json:"max_bytes"`
	TTL     string `json:"ttl,omitempty"`
	Evicted uint64 `json:"evicted"`
	Refused uint64 `json:"refused"`
}

// SummarizeState returns a piece of state without its entries.
func SummarizeState(c *state.Collection) StateSummary {
	d, s := c.Decl(), c.Stats()
	out := StateSummary{
		Name: d.Name, Kind: string(d.Kind), Scope: "instance", Entries: s.Entries, Max: d.Max, Bytes: s.Bytes, Most: d.MaxBytes,
		Evicted: s.Evicted, Refused: s.Refused,
	}
	if d.Persistent {
		out.Scope = "persistent"
	}
	if d.TTL > 0 {
		out.TTL = d.TTL.String()
	}
	return out
}

// Summaries returns the pieces of state without their entries.
func (v *StateView) Summaries() []StateSummary {
	out := make([]StateSummary, 0, len(v.Cols))
	for _, c := range v.Cols {
		c.Expire(v.Now)
		out = append(out, SummarizeState(c))
	}
	return out
}

// Get writes JSON: a list of all state, the entries of a name, or the value of
// a key. name and key may be empty.
func (v *StateView) Get(w io.Writer, name string, key *string) error {
	if name == "" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v.Summaries())
	}
	c, err := v.find(name)
	if err != nil {
		return err
	}
	var out []byte
	if key == nil {
		all, err := entriesOfState(c, v.Now, []scripting.Value{int64(math.MaxInt64)})
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := json.Indent(&b, appendValueJSON(nil, all), "", "  "); err != nil {
			return err
		}
		out = b.Bytes()
	} else {
		if c.Kind() == state.Queue {
			return fmt.Errorf("cannot get a key of %s: a queue has none", name)
		}
		if !c.Has(*key, v.Now) {
			return v.noKey(name, *key)
		}
		x, err := StateValue(c.Get(*key, v.Now))
		if err != nil {
			return err
		}
		out = appendValueJSON(nil, x)
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

// Set changes a key; text is JSON. A set has no value. A queue has no keys: one
// of the two is added as a value.
func (v *StateView) Set(name string, key, text *string) error {
	c, err := v.find(name)
	if err != nil {
		return err
	}
	kind := c.Kind()
	if kind == state.Queue && text == nil {
		key, text = nil, key
	}
	var x scripting.Value
	if text != nil {
		if x, err = readValueJSON(*text); err != nil {
			return err
		}
	}
	switch {
	case kind == state.Queue && (key != nil || text == nil):
		return fmt.Errorf("cannot set a key of %s: a queue has none, only a value can be added to it", name)
	case kind == state.Queue:
		_, err = pushState(c, v.Now, []scripting.Value{x})
	case key == nil:
		return fmt.Errorf("cannot set state %s without a key", name)
	case kind == state.Set && text != nil:
		return fmt.Errorf("cannot set a value in %s: a set has only keys", name)
	case kind == state.Set:
		_, err = insertState(c, v.Now, []scripting.Value{*key})
	case text == nil:
		return fmt.Errorf("cannot set key %q of %s without a value", *key, name)
	case kind == state.Counter:
		n, ok := x.(float64)
		if i, whole := x.(int64); whole {
			n, ok = float64(i), true
		}
		if !ok {
			return fmt.Errorf("cannot set key %q of %s to %s: a counter has numbers", *key, name, *text)
		}
		_, err = setState(c, v.Now, []scripting.Value{*key, n})
	default:
		_, err = setState(c, v.Now, []scripting.Value{*key, x})
	}
	return err
}

// Delete removes a key, or all of them.
func (v *StateView) Delete(name string, key *string) error {
	c, err := v.find(name)
	switch {
	case err != nil:
		return err
	case key == nil:
		c.Clear()
	case !c.Delete(*key, v.Now):
		return v.noKey(name, *key)
	}
	return nil
}

// Export writes the entries of all state, or of a name, as lines of JSON.
func (v *StateView) Export(w io.Writer, name string) error {
	cols := v.Cols
	if name != "" {
		c, err := v.find(name)
		if err != nil {
			return err
		}
		cols = []*state.Collection{c}
	}
	out := bufio.NewWriter(w)
	var line []byte
	for _, c := range cols {
		d := c.Decl()
		for _, e := range c.Entries(math.MaxInt, v.Now) {
			x, err := StateValue(e.Value)
			if err != nil {
				return err
			}
			line = append(appendTextJSON(append(line[:0], `{"state":`...), d.Name), `,"kind":`...)
			line = appendTextJSON(line, string(d.Kind))
			if d.Kind != state.Queue {
				line = appendTextJSON(append(line, `,"key":`...), e.Key)
			}
			if d.Kind != state.Set {
				line = appendValueJSON(append(line, `,"value":`...), x)
			}
			line = append(line, `,"written":`...)
			line = appendTextJSON(line, time.UnixMilli(e.Written).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
			if _, err := out.Write(append(line, "}\n"...)); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// All returns the entries of a piece of state: for a map the values by key, for
// a set a sorted list of keys, for a queue a list of values.
func (v *StateView) All(name string) (scripting.Value, error) {
	col, err := v.find(name)
	if err != nil {
		return nil, err
	}
	m, l := scripting.NewMap(), &scripting.List{}
	entries := col.Entries(col.Len(v.Now), v.Now)
	if col.Kind() == state.Set {
		slices.SortFunc(entries, func(a, b state.Entry) int { return strings.Compare(a.Key, b.Key) })
	}
	for _, e := range entries {
		if col.Kind() == state.Set {
			l.Items = append(l.Items, e.Key)
			continue
		}
		x, err := StateValue(e.Value)
		if err != nil {
			return nil, err
		}
		m.Set(e.Key, x)
		l.Items = append(l.Items, x)
	}
	if col.Kind() == state.Set || col.Kind() == state.Queue {
		return l, nil
	}
	return m, nil
}
