package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/weir-run/weir/scripting/state"
)

// A stored value must not keep alive a larger text that contains it.
func TestKeepsCopies(t *testing.T) {
	body := strings.Repeat("0123456789", 1000)
	within := func(s string) bool {
		at, from := uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(unsafe.Pointer(unsafe.StringData(body)))
		return len(s) > 0 && at >= from && at < from+uintptr(len(body))
	}
	for _, kind := range state.Kinds {
		c := newCollection(decl("k", kind))
		write := func(key, value string) {
			t.Helper()
			var err error
			switch kind {
			case state.Counter:
				_, err = c.Add(key, 1, 0)
			case state.Set:
				_, err = c.Insert(key, 0)
			case state.Queue:
				err = c.Push(str(value), 0)
			default:
				err = c.Set(key, str(value), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write(body[10:20], body[30:45])
		write(body[10:20], body[50:65]) // another value
		write(body[21:30], body[50:65])
		for _, e := range c.Entries(10, 0) {
			if within(e.Key) || within(e.Value.Data) {
				t.Errorf("%s keeps the text that %q or %q is a part of", kind, e.Key, e.Value.Data)
			}
		}
	}
}

// plan declares and returns the collections of a node.
func plan(s *state.Store, decls ...state.Decl) []*state.Collection {
	p := s.Plan(decls, 1, false, 0)
	p.Commit(0)
	return p.Collections
}

// The collections of a node share a limit, whatever they declare.
func TestShare(t *testing.T) {
	s := state.New(state.Options{Logger: quiet})
	s.Limit(10_000)
	cs := plan(s, decl("a", state.Map, maxBytes(1<<40)), decl("b", state.LRU, maxBytes(1<<40)))
	fill := func(c *state.Collection) (err error) {
		for i := range 100 {
			if err = c.Set(fmt.Sprint(i), str(strings.Repeat("x", 900)), 0); err != nil {
				return err
			}
		}
		return nil
	}
	err := fill(cs[0])
	if _, full := errors.AsType[*state.FullError](err); !full || !strings.Contains(err.Error(), "script.limits.state") {
		t.Errorf("got %v, want that the node has no room", err)
	}
	if a, b := cs[0].Stats(), cs[1].Stats(); a.Bytes > 10_000 || a.Bytes < 8_000 || a.Refused != 1 || b.Bytes != 0 {
		t.Errorf("got %+v and %+v", a, b)
	}
	cs[0].Clear()
	if err := fill(cs[1]); err != nil {
		t.Errorf("an lru makes no room: %v", err)
	}
	if b := cs[1].Stats(); b.Bytes > 10_000 || b.Evicted != 91 {
		t.Errorf("got %+v", b)
	}
	// Collections that are no longer declared do not count, and a smaller limit
	// applies immediately.
	cs = plan(s, decl("a", state.Map, maxBytes(1<<40)))
	if err := cs[0].Set("k", str(strings.Repeat("x", 8_000)), 0); err != nil {
		t.Error(err)
	}
	s.Limit(5_000)
	if cs = plan(s, decl("a", state.Map, maxBytes(1<<40))); cs[0].Len(0) != 0 {
		t.Errorf("%d entries are more than the limit", cs[0].Len(0))
	}
}

// Nodes without their own limit share one.
func TestTotal(t *testing.T) {
	var total state.Share
	node := func(limit int64) (*state.Store, *state.Collection) {
		s := state.New(state.Options{Logger: quiet, Total: &total})
		s.Limit(limit)
		return s, plan(s, decl("a", state.Map, maxBytes(1<<40), func(d *state.Decl) { d.MaxValue = 1 << 40 }))[0]
	}
	value := str(strings.Repeat("x", 1<<20))
	big, c := node(1 << 40)
	for i := range 1023 {
		if err := c.Set(fmt.Sprint(i), value, 0); err != nil {
			t.Fatal(err)
		}
	}
	_, other := node(0)
	if err := other.Set("k", value, 0); err == nil || !strings.Contains(err.Error(), "all nodes") {
		t.Errorf("got %v, want that all nodes have enough", err)
	}
	big.Release()
	if err := other.Set("k", value, 0); err != nil {
		t.Error(err)
	}
}
