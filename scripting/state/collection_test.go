package state_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/state"
)

// decl returns a declaration with default limits.
func decl(name string, kind state.Kind, change ...func(*state.Decl)) state.Decl {
	d := state.Decl{Name: name, Kind: kind, Max: state.DefaultMax, MaxBytes: state.DefaultMaxBytes, MaxValue: state.DefaultMaxValue}
	for _, f := range change {
		f(&d)
	}
	return d
}

func limit(n int) func(*state.Decl)         { return func(d *state.Decl) { d.Max = n } }
func ttl(t time.Duration) func(*state.Decl) { return func(d *state.Decl) { d.TTL = t } }
func maxBytes(n int64) func(*state.Decl)    { return func(d *state.Decl) { d.MaxBytes = n } }
func evict(d *state.Decl)                   { d.Evict = true }
func persistent(d *state.Decl)              { d.Persistent = true }
func num(f float64) state.Value             { return state.FloatValue(f) }
func str(s string) state.Value              { return state.StringValue(s) }
func keys(c *state.Collection, now int64) (ks []string) {
	for _, e := range c.Entries(1<<30, now) {
		ks = append(ks, e.Key)
	}
	return ks
}

func TestCounter(t *testing.T) {
	c := newCollection(decl("hits", state.Counter, limit(2)))
	add := func(key string, n, want float64) {
		t.Helper()
		if got, err := c.Add(key, n, 0); got != want || err != nil {
			t.Errorf("%s + %v: got %v, %v, want %v", key, n, got, err, want)
		}
	}
	add("a", 1, 1)
	add("a", 2.5, 3.5)
	add("b", -1, -1)
	_, err := c.Add("c", 1, 0)
	if _, ok := errors.AsType[*state.FullError](err); !ok || !strings.Contains(err.Error(), "state hits: it has all of its 2 entries (max)") {
		t.Errorf("got %v, want that it is full", err)
	}
	add("a", 1, 4.5) // existing entries still count
	if !c.Full(0) || c.Len(0) != 2 || c.Stats().Refused != 1 {
		t.Errorf("got %+v", c.Stats())
	}
	if !c.Delete("a", 0) || c.Delete("a", 0) {
		t.Error("a deleted key is there, or one that is there is not deleted")
	}
	add("c", 1, 1)
}

func TestSet(t *testing.T) {
	c := newCollection(decl("seen", state.Set, limit(3), ttl(10*time.Millisecond), evict))
	insert := func(key string, now int64, want bool) {
		t.Helper()
		if got, err := c.Insert(key, now); got != want || err != nil {
			t.Errorf("%s at %d: got %v, %v, want %v", key, now, got, err, want)
		}
	}
	insert("a", 0, true)
	insert("a", 5, false) // lives until 15
	insert("b", 6, true)
	insert("c", 7, true)
	insert("d", 8, true) // evicts the oldest write
	if diff := cmp.Diff([]string{"b", "c", "d"}, keys(c, 8)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if c.Has("b", 16) || !c.Has("c", 16) {
		t.Error("b ends at 16, c at 17")
	}
	insert("b", 16, true) // the old entry has expired, but was not removed yet
	if got := c.Stats(); got.Evicted != 1 || got.Entries != 3 {
		t.Errorf("got %+v", got)
	}
	if n := c.Len(100); n != 0 {
		t.Errorf("%d entries do not end", n)
	}
}

func TestLRU(t *testing.T) {
	c := newCollection(decl("cache", state.LRU, limit(2)))
	c.Set("a", num(1), 0)
	c.Set("b", num(2), 0)
	if c.Get("a", 0) != num(1) {
		t.Error("a is not there")
	}
	c.Has("b", 0) // does not count as a use
	c.Set("c", num(3), 0)
	if diff := cmp.Diff([]string{"a", "c"}, keys(c, 0)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	c.Set("a", state.Value{}, 0)
	if c.Has("a", 0) {
		t.Error("setting no value does not delete")
	}
}

func TestQueue(t *testing.T) {
	c := newCollection(decl("jobs", state.Queue, limit(3)))
	for _, s := range []string{"a", "b", "c"} {
		if err := c.Push(str(s), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Push(str("d"), 0); err == nil {
		t.Error("a full queue takes more")
	}
	if c.Peek(0) != str("a") || c.Pop(0) != str("a") {
		t.Error("a is not the first")
	}
	c.Push(str("d"), 0)
	var got []string
	for v := c.Pop(0); v.Kind != state.None; v = c.Pop(0) {
		got = append(got, v.Data)
	}
	if diff := cmp.Diff([]string{"b", "c", "d"}, got); diff != "" {
		t.Errorf("popped (-want +got):\n%s", diff)
	}
}

func TestBytes(t *testing.T) {
	c := newCollection(decl("m", state.Map, maxBytes(1000), evict))
	for i := range 100 {
		if err := c.Set(fmt.Sprint(i), str(strings.Repeat("x", i)), 0); err != nil {
			t.Fatal(err)
		}
		if n := c.Stats().Bytes; n > 1000 {
			t.Fatalf("it has %d bytes", n)
		}
	}
	// An entry that grows evicts other entries and not itself.
	if err := c.Set("99", str(strings.Repeat("x", 800)), 0); err != nil || c.Len(0) != 1 || c.Check() != "" {
		t.Errorf("got %v, %d entries, %s", err, c.Len(0), c.Check())
	}
	if err := c.Set("99", str(strings.Repeat("x", 900)), 0); err == nil {
		t.Error("one that alone is too large is taken")
	}
	_, err := c.Swap("k", state.Value{}, str(strings.Repeat("x", state.DefaultMaxValue)), 0)
	if _, ok := errors.AsType[*state.SizeError](err); !ok {
		t.Errorf("got %v, want that it is too large", err)
	}
}

// An entry that is larger than the limit of the whole collection must not evict
// the other entries.
func TestLargerThanAll(t *testing.T) {
	for _, d := range []state.Decl{decl("l", state.LRU, maxBytes(1000)), decl("m", state.Map, evict, maxBytes(1000))} {
		c := newCollection(d)
		for _, key := range []string{"a", "b"} {
			if err := c.Set(key, str("x"), 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range []string{"c", "a"} {
			err := c.Set(key, str(strings.Repeat("x", 1000)), 0)
			if _, ok := errors.AsType[*state.FullError](err); !ok {
				t.Errorf("%s: got %v, want that there is no room", d.Kind, err)
			}
		}
		if diff := cmp.Diff([]string{"a", "b"}, keys(c, 0)); diff != "" || c.Stats().Refused != 2 || c.Stats().Evicted != 0 {
			t.Errorf("%s: -want +got:\n%s\n%+v", d.Kind, diff, c.Stats())
		}
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := decl("m", []state.Kind{state.Map, state.LRU}[seed%2], limit(5+int(seed)))
		d.Evict = seed%3 == 0
		if seed%5 < 3 {
			d.TTL = 20 * time.Millisecond
		}
		c := newCollection(d)
		m := &model{d: d}
		now := int64(0)
		for i := range 2000 {
			now += int64(r.IntN(3))
			key, v := fmt.Sprint(r.IntN(2*d.Max)), num(float64(i))
			switch r.IntN(6) {
			case 0, 1, 2:
				if got, want := c.Set(key, v, now) == nil, m.set(key, v, now); got != want {
					t.Fatalf("seed %d, step %d: set %s is %v, want %v", seed, i, key, got, want)
				}
			case 3:
				if got, want := c.Get(key, now), m.get(key, now); got != want {
					t.Fatalf("seed %d, step %d: got %v of %s, want %v", seed, i, got, key, want)
				}
			case 4:
				if got, want := c.Delete(key, now), m.delete(key, now); got != want {
					t.Fatalf("seed %d, step %d: delete %s is %v, want %v", seed, i, key, got, want)
				}
			case 5:
				if got, want := c.Len(now), m.size(now); got != want {
					t.Fatalf("seed %d, step %d: there are %d, want %d", seed, i, got, want)
				}
			}
			if bad := c.Check(); bad != "" {
				t.Fatalf("seed %d, step %d: %s", seed, i, bad)
			}
		}
	}
}

// model is a simple implementation of a map or an lru.
type model struct {
	d       state.Decl
	entries []modelEntry // by write
	used    []string     // by use
}

type modelEntry struct {
	key     string
	v       state.Value
	written int64
}

func (m *model) expire(now int64) {
	m.entries = slices.DeleteFunc(m.entries, func(e modelEntry) bool {
		gone := m.d.TTL > 0 && now-e.written >= m.d.TTL.Milliseconds()
		if gone {
			m.forget(e.key)
		}
		return gone
	})
}

func (m *model) forget(key string) {
	m.used = slices.DeleteFunc(m.used, func(k string) bool { return k == key })
}

func (m *model) use(key string) { m.forget(key); m.used = append(m.used, key) }

func (m *model) find(key string) int {
	return slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.key == key })
}

func (m *model) set(key string, v state.Value, now int64) bool {
	m.expire(now)
	if i := m.find(key); i >= 0 {
		m.entries = slices.Delete(m.entries, i, i+1)
	} else if len(m.entries) == m.d.Max {
		victim := m.entries[0].key
		switch {
		case m.d.Kind == state.LRU:
			victim = m.used[0]
		case !m.d.Evict:
			return false
		}
		m.delete(victim, now)
	}
	m.entries = append(m.entries, modelEntry{key, v, now})
	m.use(key)
	return true
}

func (m *model) get(key string, now int64) state.Value {
	m.expire(now)
	i := m.find(key)
	if i < 0 {
		return state.Value{}
	}
	m.use(key)
	return m.entries[i].v
}

func (m *model) delete(key string, now int64) bool {
	m.expire(now)
	i := m.find(key)
	if i >= 0 {
		m.entries = slices.Delete(m.entries, i, i+1)
		m.forget(key)
	}
	return i >= 0
}

func (m *model) size(now int64) int { m.expire(now); return len(m.entries) }

// TestSwapLosesNothing runs concurrent writers that read, compute and swap.
func TestSwapLosesNothing(t *testing.T) {
	c := newCollection(decl("n", state.Map))
	const writers, each = 4, 2000
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				for {
					old := c.Get("k", 0)
					if ok, err := c.Swap("k", old, num(old.Float()+1), 0); err != nil {
						t.Error(err)
						return
					} else if ok {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if got := c.Get("k", 0).Float(); got != writers*each {
		t.Errorf("got %v, want %d", got, writers*each)
	}
}
