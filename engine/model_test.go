package engine_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/engine/config"
)

var seeds = flag.Int("seeds", 8, "how many random histories TestModel plays")

// world is what a config, its modules and the values that its components export
// are made of, one choice each.
type world struct {
	choices map[string]int
	mu      sync.Mutex
	values  map[string]string // of test.uvalue.NAME, whatever its arguments
}

// options are the choices. The first is where it begins.
var options = map[string][]string{
	"base": {
		"test.uvalue \"list\" { }\ntest.uvalue \"text\" { }\ntest.uvalue \"v\" { }\ntest.sink \"s\" { }\n",
		"test.uvalue \"v\" { }\ntest.sink \"s\" { }\ntest.uvalue \"list\" { }\ntest.uvalue \"text\" {\n  number = 1\n}\n",
	},
	"chain": {
		"test.usource \"a\" {\n  forward_to = [test.upass.b.receiver]\n}\ntest.upass \"b\" {\n  value = test.uvalue.v.value\n  forward_to = [test.sink.s.receiver]\n}\n",
		"test.source \"a\" {\n  forward_to = [test.upass.b.receiver, test.sink.s.receiver]\n}\ntest.upass \"b\" {\n  forward_to = [test.sink.s.receiver]\n}\n",
		"test.pass \"b\" {\n  value = test.uvalue.v.value\n}\n",
		"",
	},
	"own": {
		"declare \"own\" {\n  argument \"to\" { }\n  argument \"v\" {\n    optional = true\n    default = \"none\"\n  }\n  test.upass \"in\" {\n    value = argument.v.value\n    forward_to = argument.to.value\n  }\n  export \"receiver\" {\n    value = test.upass.in.receiver\n  }\n  export \"v\" {\n    value = argument.v.value + \"!\"\n  }\n}\n",
		"declare \"own\" {\n  argument \"to\" { }\n  argument \"v\" {\n    optional = true\n  }\n  foreach \"f\" {\n    collection = string.split(argument.v.value, \",\")\n    var = \"i\"\n    template {\n      test.upass \"in\" {\n        value = i\n        forward_to = argument.to.value\n      }\n    }\n  }\n  test.upass \"in\" {\n    forward_to = argument.to.value\n  }\n  export \"receiver\" {\n    value = test.upass.in.receiver\n  }\n  export \"v\" {\n    value = \"!\"\n  }\n}\n",
		"declare \"own\" {\n  argument \"to\" { }\n  argument \"v\" { }\n  declare \"deep\" {\n    argument \"x\" { }\n    test.uvalue \"in\" {\n      value = argument.x.value\n    }\n    export \"y\" {\n      value = test.uvalue.in.value\n    }\n  }\n  deep \"one\" {\n    x = argument.v.value\n  }\n  test.upass \"in\" {\n    value = deep.one.y\n  }\n  export \"receiver\" {\n    value = test.upass.in.receiver\n  }\n  export \"v\" {\n    value = deep.one.y\n  }\n}\n",
		"",
		"declare \"own\" {\n",
	},
	"use": {
		"own \"x\" {\n  to = [test.sink.s.receiver]\n  v = test.uvalue.v.value\n}\ntest.usource \"u\" {\n  value = own.x.v\n  forward_to = [own.x.receiver]\n}\n",
		"own \"x\" {\n  to = [test.sink.s.receiver]\n  v = \"const\"\n}\nown \"y\" {\n  to = [own.x.receiver, test.sink.s.receiver]\n  v = own.x.v\n}\n",
		"own \"y\" {\n  to = [test.sink.s.receiver]\n}\n",
		"",
	},
	"loop": {
		"foreach \"l\" {\n  collection = string.split(test.uvalue.list.value, \",\")\n  var = \"each\"\n  template {\n    test.upass \"p\" {\n      value = each\n      forward_to = [test.sink.s.receiver]\n    }\n    test.usource \"q\" {\n      value = test.uvalue.v.value\n      forward_to = [test.upass.p.receiver]\n    }\n  }\n}\n",
		"foreach \"l\" {\n  collection = [{n = test.uvalue.v.value, k = \"a\"}, {n = \"x\", k = \"b\"}]\n  var = \"each\"\n  id = \"k\"\n  template {\n    test.uvalue \"p\" {\n      value = each.n\n    }\n  }\n}\n",
		"foreach \"l\" {\n  collection = string.split(test.uvalue.list.value, \",\")\n  var = \"each\"\n  template {\n    m.p \"x\" {\n      value = each\n    }\n    foreach \"in\" {\n      collection = [each, test.uvalue.v.value]\n      var = \"i\"\n      template {\n        test.usource \"q\" {\n          value = i\n        }\n      }\n    }\n  }\n}\n",
		"",
	},
	"file": {
		"import.file \"m\" {\n  filename = \"m.alloy\"\n}\nm.p \"top\" {\n  value = test.uvalue.v.value\n}\n",
		"import.file \"m\" {\n  filename = \"dir\"\n}\nm.p \"top\" {\n  value = \"fix\"\n}\ntest.usource \"m\" {\n  value = m.p.top.out\n}\n",
		"import.file \"m\" {\n  filename = \"m.alloy\"\n}\nimport.file \"n\" {\n  filename = \"dir\"\n}\nm.p \"top\" {\n  value = n.p.top.out\n}\nn.p \"top\" {\n  value = test.uvalue.v.value\n}\n",
		"import.file \"m\" {\n  filename = \"m.alloy\"\n}\n",
		"",
	},
	"scripts": {
		"import.scripts \"z\" {\n  path = \"scripts\"\n}\nz.a.pass \"k\" {\n  value = test.uvalue.v.value\n  forward_to = [test.sink.s.receiver]\n}\n",
		"import.scripts \"z\" {\n  path = \"scripts\"\n}\nimport.scripts \"zz\" {\n  path = \"other\"\n}\nz.a.pass \"k\" { }\nforeach \"zl\" {\n  collection = string.split(test.uvalue.list.value, \",\")\n  var = \"each\"\n  template {\n    zz.a.pass \"k\" {\n      value = each\n      forward_to = [z.a.pass.k.receiver]\n    }\n  }\n}\n",
		"import.scripts \"z\" {\n  path = \"other\"\n}\nz.a.pass \"k\" { }\n",
		"",
	},
	"string": {
		"import.string \"s\" {\n  content = test.uvalue.text.value\n}\ns.p \"t\" {\n  value = test.uvalue.v.value\n}\n",
		"import.string \"s\" {\n  content = test.uvalue.text.value\n}\ns.p \"t\" {\n  value = \"1\"\n}\ntest.usource \"st\" {\n  value = s.p.t.out\n}\n",
		"",
	},
}

var modules = []string{
	"declare \"p\" {\n  argument \"value\" { }\n  test.uvalue \"w\" {\n    value = argument.value.value\n  }\n  export \"out\" {\n    value = test.uvalue.w.value\n  }\n}\n",
	"declare \"p\" {\n  argument \"value\" { }\n  test.uvalue \"w\" {\n    value = argument.value.value\n    number = 1\n  }\n  test.usource \"more\" {\n    value = test.uvalue.w.value\n  }\n  export \"out\" {\n    value = argument.value.value + module_path\n  }\n}\n",
	"declare \"p\" {\n  argument \"value\" { }\n  q \"nested\" {\n    value = argument.value.value\n  }\n  export \"out\" {\n    value = q.nested.out\n  }\n}\ndeclare \"q\" {\n  argument \"value\" { }\n  test.upass \"w\" {\n    value = argument.value.value\n  }\n  export \"out\" {\n    value = \"q\"\n  }\n}\n",
	"declare \"p\" {\n  argument \"value\" { }\n  foreach \"f\" {\n    collection = string.split(argument.value.value, \",\")\n    var = \"each\"\n    template {\n      test.upass \"w\" {\n        value = each\n      }\n    }\n  }\n  export \"out\" {\n    value = \"loop\"\n  }\n}\n",
	"declare \"p\" {\n  argument \"value\" { }\n  test.uvalue \"w\" {\n    value = argument.value.value\n", // half
	"",
	"declare \"p\" {\n  argument \"value\" { }\n  test.nothing \"w\" { }\n  export \"out\" {\n    value = 1\n  }\n}\n",
}

func (w *world) config() string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(options)) {
		s.WriteString(options[name][w.choices[name]])
	}
	return s.String()
}

// row is what there is to see of a node.
type row struct {
	ID, Name, Position, Version, Health string
	DependsOn, SendsTo                  []string
	Arguments, Exports                  any
	builds                              uint64
}

func (l *harness) rows() (rows []row) {
	for _, i := range l.e.ListComponents() {
		rows = append(rows, row{i.ID, i.Name, i.Position, i.Version, i.Health.State.String() + " " + i.Health.Message, i.DependsOn, i.SendsTo, config.Redact(i.Arguments), config.Redact(i.Exports), i.Builds})
	}
	return rows
}

// TestModel does random changes of a config, its modules and what components
// export. Whatever came before, the graph is the one of a start with what there
// is now, and nodes whose arguments stay are not touched.
func TestModel(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(l *harness) { model(t, l, rand.New(rand.NewPCG(uint64(seed), 1))) })
		})
	}
}

func model(t *testing.T, l *harness, r *rand.Rand) {
	w := &world{choices: map[string]int{}, values: map[string]string{"list": "a,b", "text": modules[0], "v": "v1"}}
	l.world = w
	// Components take their time to end, so that what comes again finds what leaves.
	l.onRun = func(ctx context.Context, f *fake) error {
		<-ctx.Done()
		time.Sleep(time.Duration(len(f.id)%3) * time.Second)
		return nil
	}
	dir := func(name string) string { return filepath.Join(l.dir, "dir", name) }
	l.save("m.alloy", []byte(modules[0]))
	l.save("dir/a.alloy", []byte(modules[0]))
	l.save("scripts/a/pass.lua", []byte("1"))
	l.save("other/a/pass.lua", []byte("1"))
	l.start(w.config())
	var log []string
	before := l.rows()
	last := 24
	for step := range last + 1 {
		edits := 1 + r.IntN(3)
		for range edits {
			var did string
			switch k := r.IntN(10); {
			case k < 3:
				names := slices.Sorted(maps.Keys(options))
				name := names[r.IntN(len(names))]
				w.choices[name] = pick(r, len(options[name]), 3)
				l.write(w.config())
				did = fmt.Sprintf("config %s = %d", name, w.choices[name])
				if r.IntN(2) == 0 {
					did += fmt.Sprint(": ", l.e.Reload(context.Background()))
				} else {
					did += fmt.Sprint(" saved: ", l.e.FilesChanged(context.Background(), []string{l.config}))
				}
			case k < 7:
				name := []string{"list", "text", "v"}[r.IntN(3)]
				w.mu.Lock()
				switch name {
				case "list":
					w.values[name] = []string{"a,b", "b,a", "a", "a,a,c", "", "invalid,a"}[pick(r, 6, 5)]
				case "v":
					w.values[name] = []string{"v1", "v2", "x,y", "y,x", "invalid", "cannot build"}[pick(r, 6, 4)]
				case "text":
					w.values[name] = modules[pick(r, len(modules), 4)]
				}
				did = fmt.Sprintf("export %s = %.40q", name, w.values[name])
				l.fake("test.uvalue." + name).o.Export(valueExports{Value: w.values[name]})
				w.mu.Unlock()
			case k < 8:
				path := l.save([]string{"scripts/a/pass.lua", "other/a/pass.lua"}[r.IntN(2)], []byte([]string{"1", "2", "3", "broken"}[pick(r, 4, 3)]))
				if r.IntN(10) == 0 {
					os.Remove(path)
				}
				did = fmt.Sprint("script ", path, l.e.FilesChanged(context.Background(), []string{path}))
			default:
				path := []string{filepath.Join(l.dir, "m.alloy"), dir("a.alloy"), dir("b.alloy")}[r.IntN(3)]
				n := pick(r, len(modules)+2, 4)
				did = fmt.Sprintf("file %s = %d", filepath.Base(path), n)
				switch {
				case n < len(modules):
					text := modules[n]
					if strings.HasSuffix(path, "b.alloy") {
						text = strings.ReplaceAll(strings.ReplaceAll(text, `"p"`, `"r"`), `"q"`, `"q2"`)
					}
					os.MkdirAll(filepath.Dir(path), 0o755)
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				case n == len(modules):
					os.Remove(path)
				default:
					os.RemoveAll(dir(""))
					path = dir("")
				}
				did += fmt.Sprint(": ", l.e.FilesChanged(context.Background(), []string{path}))
			}
			log = append(log, did)
			switch r.IntN(4) {
			case 0, 1:
				synctest.Wait()
			case 2:
				time.Sleep(time.Duration(r.IntN(2500)) * time.Millisecond) // the bubble's
			}
		}
		if step == last {
			break // it is told to end in the midst of it
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		fresh := l.twin()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- fresh.e.Run(ctx, l.config) }()
		synctest.Wait()
		want := fresh.rows()
		ready := fresh.e.Ready()
		cancel()
		err := <-done
		got := l.rows()
		if edits == 1 {
			for _, now := range got {
				i := slices.IndexFunc(before, func(r row) bool { return r.ID == now.ID })
				if i >= 0 && before[i].Name == now.Name && before[i].Version == now.Version && before[i].builds != now.builds && before[i].Health == "healthy running" && reflect.DeepEqual(before[i].Arguments, now.Arguments) {
					t.Errorf("step %d: %s was built though nothing of it changed, after\n%s", step, now.ID, strings.Join(log, "\n"))
				}
			}
		}
		before = got
		log = append(log, fmt.Sprintf("-- %d: fresh ready %v", step, ready))
		if !ready {
			if err == nil {
				t.Fatal("not ready without an error")
			}
			continue
		}
		if slices.ContainsFunc(want, func(r row) bool { return !strings.HasPrefix(r.Health, "healthy") }) {
			continue
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(row{})); d != "" {
			t.Fatalf("step %d: not what a start makes (-want +got):\n%s\nafter\n%s\nsaid\n%s", step, d, strings.Join(log, "\n"), l.takeLines())
		}
	}
	if err := l.end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	l.stop = nil
}

// pick returns one of n, mostly of the first that are good.
func pick(r *rand.Rand, n, good int) int {
	if r.IntN(5) > 0 {
		n = min(n, good)
	}
	return r.IntN(n)
}

// twin is a harness with the files of another.
func (l *harness) twin() *harness {
	m := newHarness(l.t)
	m.dir, m.config, m.world = l.dir, l.config, l.world
	m.newEngine()
	return m
}
