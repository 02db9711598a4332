package database_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/database"
)

// arguments of the fake store.
type arguments struct {
	Common database.Arguments `alloy:",squash"`
}

func (a *arguments) SetToDefault()   { a.Common.SetToDefault() }
func (a *arguments) Validate() error { return a.Common.Validate() }

// fake is a store in memory.
type fake struct {
	mu       sync.Mutex
	values   map[string]string
	changed  chan struct{} // closed and replaced at every change
	seen     chan struct{} // changed at the last Get
	err      error         // of all operations
	opened   int
	open     int
	gets     int
	prefixes []string
}

func newFake(values map[string]string) *fake {
	return &fake{values: values, changed: make(chan struct{})}
}

func (f *fake) set(edit func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Get(_ context.Context, prefixes []string) (map[string]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gets++
	f.seen = f.changed
	f.prefixes = prefixes
	return maps.Clone(f.values), f.err
}

func (f *fake) Watch(ctx context.Context, _ []string) error {
	f.mu.Lock()
	changed := f.seen
	f.mu.Unlock()
	select {
	case <-changed:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	return nil
}

func (f *fake) registration() component.Registration {
	return database.Registration(database.Kind{
		Name:    "remote.fake",
		NewArgs: func() any { a := new(arguments); a.SetToDefault(); return a },
		Common:  func(args any) *database.Arguments { return &args.(*arguments).Common },
		Open: func(context.Context, any, database.Options) (database.Store, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.err != nil {
				return nil, f.err
			}
			f.opened++
			f.open++
			return f, nil
		},
	})
}

// run runs the component of f in a synctest bubble.
func run(t *testing.T, f *fake, body string) (*componenttest.Node, component.Updater) {
	t.Helper()
	n := componenttest.New(t, "remote.fake.x")
	c := n.Build(t, f.registration(), componenttest.Arguments[*arguments](t, f.registration(), body))
	n.Run(t, c)
	synctest.Wait()
	return n, c.(component.Updater)
}

// pass lets time pass for timers of both clocks.
func pass(n *componenttest.Node, d time.Duration) {
	time.Sleep(d)
	n.Clock.Advance(d)
	synctest.Wait()
}

func want(t *testing.T, n *componenttest.Node, values map[string]string) {
	t.Helper()
	got := map[string]string{}
	if e, ok := n.Exports().(database.Exports); ok {
		for k, v := range e.Values {
			got[k] = v.Value
		}
	}
	if diff := cmp.Diff(values, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestNames(t *testing.T) {
	values := map[string]string{"/app": "1", "/app/db": "2", "/app/db/host": "3", "/apple": "4", "/app/dbs": "5", "top": "6"}
	f := func(body string, prefixes []string, exported map[string]string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store := newFake(values)
			n, _ := run(t, store, body)
			want(t, n, exported)
			if diff := cmp.Diff(prefixes, store.prefixes); diff != "" {
				t.Errorf("%s: prefixes (-want +got):\n%s", body, diff)
			}
		})
	}
	f(`prefix = "/app"`, []string{"/app"}, map[string]string{"/": "1", "/db": "2", "/db/host": "3", "/dbs": "5"})
	f(`prefix = "/app/"`, []string{"/app/"}, map[string]string{"/db": "2", "/db/host": "3", "/dbs": "5"})
	f(`prefix = "/app"`+"\n"+`keys = ["/db"]`, []string{"/app/db"}, map[string]string{"/db": "2", "/db/host": "3"})
	f(`prefix = "/app/"`+"\n"+`keys = ["db/", "dbs"]`, []string{"/app/db/", "/app/dbs"}, map[string]string{"/db/host": "3", "/dbs": "5"})
	f(`keys = ["/apple", "top"]`, []string{"/apple", "top"}, map[string]string{"/apple": "4", "/top": "6"})
	all := map[string]string{"/app": "1", "/app/db": "2", "/app/db/host": "3", "/apple": "4", "/app/dbs": "5", "/top": "6"}
	f(``, []string{""}, all)
	f(`prefix = "/"`, []string{""}, all)
	f(`keys = ["/"]`, []string{""}, all)
}

func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(map[string]string{"/a": "1"})
		n, _ := run(t, store, ``)
		want(t, n, map[string]string{"/a": "1"})
		store.set(func() { store.values = map[string]string{"/a": "2", "/b": "1"} })
		pass(n, time.Second)
		want(t, n, map[string]string{"/a": "2", "/b": "1"})
		store.set(func() { delete(store.values, "/a") })
		pass(n, time.Second)
		want(t, n, map[string]string{"/b": "1"})
		if store.opened != 1 {
			t.Errorf("the store was opened %d times, want once", store.opened)
		}
	})
}

// TestManyChanges: a store that changes all the time is read four times a second.
func TestManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(map[string]string{})
		n, _ := run(t, store, ``)
		for i := range 1000 {
			store.set(func() { store.values["/a"] = fmt.Sprint(i) })
			time.Sleep(10 * time.Millisecond)
		}
		pass(n, time.Second)
		want(t, n, map[string]string{"/a": "999"})
		if store.gets < 20 || store.gets > 45 {
			t.Errorf("the store was read %d times within 10 s, want about 40", store.gets)
		}
	})
}

// TestMissedChanges: changes that are not notified are found after poll_frequency.
func TestMissedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(map[string]string{"/a": "1"})
		n, _ := run(t, store, `poll_frequency = "30s"`)
		store.mu.Lock()
		store.values["/a"] = "2"
		store.mu.Unlock()
		pass(n, 29*time.Second)
		want(t, n, map[string]string{"/a": "1"})
		pass(n, 2*time.Second)
		want(t, n, map[string]string{"/a": "2"})
	})
}

// TestFailures: the last good values stay while the store fails.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(map[string]string{"/a": "1"})
		store.err = errors.New("no route to https://user:hunter2@host/")
		n, _ := run(t, store, ``)
		if n.Exports() != nil {
			t.Errorf("got exports %v before the store was read", n.Exports())
		}
		store.set(func() { store.err = nil })
		pass(n, 2*time.Second)
		want(t, n, map[string]string{"/a": "1"})
		store.set(func() { store.err = errors.New("down"); store.values = nil })
		for range 5 {
			pass(n, time.Minute)
		}
		want(t, n, map[string]string{"/a": "1"})
		if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "down") {
			t.Errorf("got health %+v, want unhealthy: down", h)
		}
		store.set(func() { store.err = nil; store.values = map[string]string{"/a": "2"} })
		pass(n, 2*time.Minute)
		want(t, n, map[string]string{"/a": "2"})
		if h := n.Health(); h.State != component.Healthy {
			t.Errorf("got health %+v, want healthy", h)
		}
		if strings.Contains(n.Logs(), "hunter2") || strings.Count(n.Logs(), "level=ERROR") != 2 {
			t.Errorf("the log has a secret, or not one error for each change of the state:\n%s", n.Logs())
		}
		metrics := "# HELP weir_database_keys Keys that the component exports.\n# TYPE weir_database_keys gauge\nweir_database_keys{component_id=\"remote.fake.x\"} 1\n"
		if err := testutil.GatherAndCompare(n.Registry, strings.NewReader(metrics), "weir_database_keys"); err != nil {
			t.Error(err)
		}
	})
}

func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(map[string]string{"/a": strings.Repeat("x", 16<<20)})
		n, _ := run(t, store, ``)
		if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "use a longer prefix") {
			t.Errorf("got health %+v, want unhealthy with the limit", h)
		}
	})
}

func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := run(t, newFake(map[string]string{"/a": "1"}), `is_secret = true`)
		e := database.Exports{Values: map[string]component.OptionalSecret{"/a": {IsSecret: true, Value: "1"}}}
		if diff := cmp.Diff(any(e), n.Exports()); diff != "" {
			t.Errorf("exports (-want +got):\n%s", diff)
		}
	})
}

func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake(map[string]string{"/a/x": "1", "/b/x": "2"})
		n, c := run(t, store, `prefix = "/a"`)
		want(t, n, map[string]string{"/x": "1"})
		if err := c.Update(componenttest.Arguments[*arguments](t, store.registration(), `prefix = "/b"`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, n, map[string]string{"/x": "2"})
		store.mu.Lock()
		defer store.mu.Unlock()
		if store.open != 1 {
			t.Errorf("%d connections are open, want 1", store.open)
		}
	})
}

func TestValidate(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := componenttest.Decode[*arguments](newFake(nil).registration(), body)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	f(`poll_frequency = "0s"`, "poll_frequency is 0s, must be greater than 0")
	f(`poll_timeout = "-1s"`, "poll_timeout is -1s, must be greater than 0")
	f("keys = ["+strings.Repeat(`"a", `, 61)+"]", "keys has 61 elements, must have at most 60")
}
