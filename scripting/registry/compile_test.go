package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
)

// slowLua is Lua whose compiler does not come back from some files until it is let.
type slowLua struct {
	*lua.Language
	mu    sync.Mutex
	times int
	began chan struct{} // has a value when a slow file is being compiled
	let   chan struct{}
	after bool // all files are slow, after they were compiled
}

func (l *slowLua) Compile(f scripting.File, env scripting.Env) (scripting.Program, error) {
	if l.after {
		defer l.wait()
	} else if strings.Contains(f.Text, "-- slow") {
		l.wait()
	}
	return l.Language.Compile(f, env)
}

func (l *slowLua) wait() {
	l.mu.Lock()
	l.times++
	l.mu.Unlock()
	select {
	case l.began <- struct{}{}:
	default:
	}
	<-l.let
}

// compiledTimes returns how often slow files were compiled.
func (l *slowLua) compiledTimes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// compiled is a folder of scripts with a language that is slow, and what its
// catalog said has changed.
func compiled(t *testing.T, texts map[string]string) (l *slowLua, c component.Catalog, changes chan []string, value func(metric int) float64) {
	t.Helper()
	f := &registrytest.Folder{T: t, Dir: t.TempDir()}
	for name, text := range texts {
		f.Write(name, text)
	}
	l = &slowLua{Language: lua.New(), began: make(chan struct{}, 1), let: make(chan struct{})}
	p := registry.NewCompilers(0)
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{l}, UserDir: f.Dir, Compilers: p})
	if err != nil {
		t.Fatal(err)
	}
	changes = make(chan []string, 10)
	return l, c, changes, func(metric int) float64 {
		var m dto.Metric
		if err := p.Collectors()[metric].(interface{ Write(*dto.Metric) error }).Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
}

// TestLookupsAreIndependent: while one script compiles, others are looked up, and so
// are the names of all scripts and the change of a file.
func TestLookupsAreIndependent(t *testing.T) {
	l, c, _, _ := compiled(t, map[string]string{"a/slow.lua": "-- slow\n" + registrytest.Script, "a/fast.lua": registrytest.Script, "a/known.lua": registrytest.Script})
	before := registrytest.Lookup(t, c, "a.known")
	slow := make(chan component.Registration, 1)
	go func() {
		r, _ := c.Lookup("a.slow")
		slow <- r
	}()
	<-l.began
	others := make(chan component.Registration)
	go func() {
		for _, name := range []string{"a.known", "a.fast"} {
			r, _ := c.Lookup(name)
			others <- r
		}
		c.Refresh([]string{before.Sources[0]})
		c.Names()
		r, _ := c.Lookup("a.known")
		others <- r
	}()
	for _, name := range []string{"a.known", "a.fast", "a.known"} {
		select {
		case r := <-others:
			if r.Name != name || r.Err != nil {
				t.Errorf("got %s with %v, want %s", r.Name, r.Err, name)
			}
		case r := <-slow:
			t.Fatalf("the lookup of %s waited until that of a.slow gave up: %v", name, r.Err)
		}
	}
	close(l.let)
	if r := <-slow; r.Name != "a.slow" || r.Err != nil {
		t.Errorf("got %s with %v", r.Name, r.Err)
	}
}

// TestLookupsShareCompilation: lookups of one name wait for the same compilation, also
// after a refresh.
func TestLookupsShareCompilation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, _, _ := compiled(t, map[string]string{"a/slow.lua": "-- slow\n" + registrytest.Script})
		found := make(chan component.Registration, 4)
		for i := range cap(found) {
			if i == 2 {
				c.Refresh(c.Roots())
			}
			go func() {
				r, _ := c.Lookup("a.slow")
				found <- r
			}()
			synctest.Wait()
		}
		close(l.let)
		versions := map[string]bool{}
		for range cap(found) {
			r := <-found
			if r.Err != nil {
				t.Error(r.Err)
			}
			versions[r.Version] = true
		}
		if n := l.compiledTimes(); n != 1 || len(versions) != 1 {
			t.Errorf("the script was compiled %d times, to versions %v", n, versions)
		}
	})
}

// TestCompileTakesLong: a lookup does not wait for a compiler that takes long;
// others are answered, and the version is there when it is done.
func TestCompileTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, changes, value := compiled(t, map[string]string{"a/slow.lua": "-- slow\n" + registrytest.Script, "a/fast.lua": registrytest.Script})
		c.(component.Changing).OnChange(func(paths []string) { changes <- paths })
		began := time.Now()
		r, ok := c.Lookup("a.slow")
		if !ok || r.Err == nil || !strings.Contains(r.Err.Error(), "takes longer than 250ms") || len(r.Sources) == 0 {
			t.Fatalf("got %v, %v", r.Sources, r.Err)
		}
		if waited := time.Since(began); waited != 250*time.Millisecond {
			t.Errorf("the lookup waited for %s", waited)
		}
		pending, ok := errors.AsType[*component.PendingError](r.Err)
		if !ok || !strings.HasPrefix(pending.What, "the compilation of ") {
			t.Fatalf("got %T, want that it waits for the compilation", r.Err)
		}
		if r, _ := c.Lookup("a.fast"); r.Err != nil {
			t.Errorf("the other script: %v", r.Err)
		}
		c.Refresh(c.Roots()) // as any reload does
		began = time.Now()
		if r, _ := c.Lookup("a.slow"); r.Err == nil || l.compiledTimes() != 1 {
			t.Errorf("got %v after it was compiled %d times", r.Err, l.compiledTimes())
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the second lookup waited for %s", waited)
		}
		close(l.let)
		<-pending.Done
		c.Refresh(<-changes)
		if r, _ := c.Lookup("a.slow"); r.Err != nil {
			t.Errorf("after it was done: %v", r.Err)
		}
		if l.compiledTimes() != 1 || value(0) != 0 || value(1) != 0 {
			t.Errorf("compiled %d times, %v overdue, %v timeouts", l.compiledTimes(), value(0), value(1))
		}
		synctest.Wait()
	})
}

// TestShippedScriptTakesLong: a script that lies in no folder is there when it is
// compiled, too.
func TestShippedScriptTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLua{Language: lua.New(), began: make(chan struct{}, 1), let: make(chan struct{})}
		c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{l}, Embedded: fstest.MapFS{"a/slow.lua": {Data: []byte("-- slow\n" + registrytest.Script)}}})
		if err != nil {
			t.Fatal(err)
		}
		changes := make(chan []string, 1)
		c.(component.Changing).OnChange(func(paths []string) { changes <- paths })
		if r, _ := c.Lookup("a.slow"); r.Err == nil {
			t.Error("the script is compiled")
		}
		close(l.let)
		c.Refresh(<-changes)
		if r, _ := c.Lookup("a.slow"); r.Err != nil || l.compiledTimes() != 1 {
			t.Errorf("got %v after it was compiled %d times", r.Err, l.compiledTimes())
		}
	})
}

// TestManyCompileLong: scripts that take long to compile delay lookups about twice as
// long as one of them does.
func TestManyCompileLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := map[string]string{}
		for i := range 50 {
			texts[fmt.Sprintf("a/slow%d.lua", i)] = "-- slow\n" + registrytest.Script
		}
		l, c, _, _ := compiled(t, texts)
		c.(component.Changing).OnChange(func([]string) {})
		began := time.Now()
		for _, name := range c.Names() {
			if r, _ := c.Lookup(name); r.Err == nil {
				t.Errorf("%s is compiled", name)
			}
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the lookups waited for %s", waited)
		}
		close(l.let)
		synctest.Wait()
	})
}

// TestRequiredFileChangesMeanwhile: the outcome of a compilation is not used if a file
// that it read, or looked for, has changed meanwhile.
func TestRequiredFileChangesMeanwhile(t *testing.T) {
	f := func(name, before, after string) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := registrytest.Folder{T: t, Dir: t.TempDir()}
				dir.Write("a/slow.lua", "require('m')\n"+registrytest.Script)
				if before != "" {
					dir.Write("lib/m.lua", before)
				}
				l := &slowLua{Language: lua.New(), after: true, began: make(chan struct{}, 1), let: make(chan struct{})}
				c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{l}, UserDir: dir.Dir})
				if err != nil {
					t.Fatal(err)
				}
				c.(component.Changing).OnChange(func([]string) {})
				if r, _ := c.Lookup("a.slow"); r.Err == nil || !strings.Contains(r.Err.Error(), "takes longer") {
					t.Fatalf("got %v", r.Err)
				}
				dir.Write("lib/m.lua", after)
				close(l.let)
				synctest.Wait()
				c.Refresh(c.Roots())
				if r, _ := c.Lookup("a.slow"); r.Err != nil || l.compiledTimes() != 2 {
					t.Errorf("got %v after it was compiled %d times", r.Err, l.compiledTimes())
				}
			})
		})
	}
	f("it is corrected", "= 1", "return 1")
	f("it appears", "", "return 1")
}

// TestCompileNeverEnds: a compilation that takes too long is abandoned, counted and
// reported; there are only so many.
func TestCompileNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := map[string]string{}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			texts["x/"+name+".lua"] = "-- slow\n" + registrytest.Script
		}
		l, c, changes, value := compiled(t, texts)
		// Nobody is told of changes: the lookup waits for all of the time.
		if r, _ := c.Lookup("x.a"); r.Err == nil || !strings.Contains(r.Err.Error(), "took longer than 10s") {
			t.Fatalf("got %v", r.Err)
		}
		c.(component.Changing).OnChange(func(paths []string) { changes <- paths })
		for _, name := range []string{"b", "c", "d"} {
			if r, _ := c.Lookup("x." + name); r.Err == nil || !strings.Contains(r.Err.Error(), "takes longer than 250ms") {
				t.Fatalf("got %v", r.Err)
			}
			c.Refresh(<-changes)
			if r, _ := c.Lookup("x." + name); r.Err == nil || !strings.Contains(r.Err.Error(), "took longer than 10s") {
				t.Fatalf("got %v", r.Err)
			}
		}
		if value(0) != 4 || value(1) != 4 {
			t.Errorf("%v overdue, %v timeouts, want 4 of each", value(0), value(1))
		}
		if r, _ := c.Lookup("x.e"); r.Err == nil || !strings.Contains(r.Err.Error(), "4 scripts still compile") {
			t.Errorf("got %v", r.Err)
		}
		close(l.let)
		synctest.Wait()
		if value(0) != 0 {
			t.Errorf("%v overdue after all are done", value(0))
		}
		c.Refresh(c.Roots())
		if r, _ := c.Lookup("x.e"); r.Err != nil {
			t.Errorf("got %v after all are done", r.Err)
		}
	})
}
