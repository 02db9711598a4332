package registry_test

import (
	"strings"
	"sync"
	"testing"
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
	let   chan struct{}
}

func (l *slowLua) Compile(f scripting.File, env scripting.Env) (scripting.Program, error) {
	if strings.Contains(f.Text, "-- slow") {
		l.mu.Lock()
		l.times++
		l.mu.Unlock()
		<-l.let
	}
	return l.Language.Compile(f, env)
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
	l = &slowLua{Language: lua.New(), let: make(chan struct{})}
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

// TestCompileTakesLong: a lookup does not wait for a compiler that takes long;
// others are answered, and the version is there when it is done.
func TestCompileTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, changes, value := compiled(t, map[string]string{"a/slow.lua": "-- slow\n" + registrytest.Script, "a/fast.lua": registrytest.Script})
		c.(component.Changing).OnChange(func(paths []string) { changes <- paths })
		began := time.Now()
		r, ok := c.Lookup("a.slow")
		if !ok || r.Err == nil || !strings.Contains(r.Err.Error(), "takes longer than 1s") || len(r.Sources) == 0 {
			t.Fatalf("got %v, %v", r.Sources, r.Err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("the lookup waited for %s", waited)
		}
		if r, _ := c.Lookup("a.fast"); r.Err != nil {
			t.Errorf("the other script: %v", r.Err)
		}
		c.Refresh(c.Roots()) // as any reload does
		if r, _ := c.Lookup("a.slow"); r.Err == nil || l.compiledTimes() != 1 {
			t.Errorf("got %v after it was compiled %d times", r.Err, l.compiledTimes())
		}
		close(l.let)
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
			if r, _ := c.Lookup("x." + name); r.Err == nil || !strings.Contains(r.Err.Error(), "takes longer than 1s") {
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
