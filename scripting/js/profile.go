package js

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dop251/goja"
	"github.com/google/pprof/profile"

	"github.com/weir-run/weir/scripting"
)

// gojaProfile shares goja's profiler, of which there is one in the process,
// between the profiles of nodes. It samples all VMs. To find the node of a
// sample, while it runs hooks are called by a function in a file of its own, which
// is the outermost frame of their samples.
type gojaProfile struct {
	running atomic.Bool

	mu  sync.Mutex
	out *bytes.Buffer        // of goja; nil: it does not run
	of  map[string]*profiled // by the name of the file
	n   int                  // profiles so far
}

// rootFile begins the names of these files. No script has such a name. A node that
// is not profiled uses the name itself.
const rootFile = "\x00profile"

// profiled is a profile of a node.
type profiled struct {
	p     *scripting.Profile
	file  string
	files map[string]bool // names of the files of its programs
}

var profiling gojaProfile

// join returns the name of the file for calls of a profile. It starts goja's
// profiler if necessary. If p is nil or has ended, the file has no profile.
func (g *gojaProfile) join(p *scripting.Profile, prog *program) string {
	if p == nil {
		return rootFile
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var e *profiled
	for _, other := range g.of {
		if other.p == p {
			e = other
		}
	}
	if e == nil {
		g.n++
		e = &profiled{p, fmt.Sprintf("%s %d", rootFile, g.n), map[string]bool{}}
		if !p.OnEnd(func() { g.leave(e) }) {
			return e.file
		}
		if g.of == nil {
			g.of = map[string]*profiled{}
		}
		g.of[e.file] = e
		g.start()
	}
	for name := range prog.files {
		e.files[name] = true
	}
	return e.file
}

// leave ends a profile. Samples so far go to all profiles.
func (g *gojaProfile) leave(e *profiled) {
	g.mu.Lock()
	defer g.mu.Unlock()
	goja.StopProfile()
	if got, err := profile.Parse(g.out); err == nil {
		for _, s := range got.Sample {
			g.add(s)
		}
	}
	g.out = nil
	g.running.Store(false)
	delete(g.of, e.file)
	if len(g.of) > 0 {
		g.start()
	}
}

func (g *gojaProfile) start() {
	if g.out != nil {
		return
	}
	g.out = &bytes.Buffer{}
	if err := goja.StartProfile(g.out); err != nil {
		panic("BUG: " + err.Error())
	}
	g.running.Store(true)
}

// sameName matches what goja appends to the names of functions that are not
// unique.
var sameName = regexp.MustCompile(`\.\d+$`)

// add adds a sample of goja to the profile of its node.
func (g *gojaProfile) add(s *profile.Sample) {
	var owner *profiled
	var stack []scripting.Frame
	rooted := false
	for _, at := range s.Location {
		for _, l := range at.Line {
			if strings.HasPrefix(l.Function.Filename, rootFile) {
				rooted, owner = true, g.of[l.Function.Filename]
				continue
			}
			name := sameName.ReplaceAllString(l.Function.Name, "")
			if name == "<anonymous>" {
				name = "function"
			}
			stack = append(stack, scripting.Frame{File: l.Function.Filename, Line: int(l.Line), Func: name})
		}
	}
	if !rooted {
		owner = g.ownerOf(stack)
	}
	if owner == nil {
		return
	}
	own := stack[:0]
	for _, f := range stack {
		if owner.files[f.File] {
			own = append(own, f)
		}
	}
	owner.p.Add(s.Value[0], own)
}

// ownerOf finds the profile of a stack without its outermost frame: it is too
// deep, or goes on after an await. It is the only one with these files, if there
// is one.
func (g *gojaProfile) ownerOf(stack []scripting.Frame) (owner *profiled) {
	for _, f := range stack {
		for _, e := range g.of {
			if e.files[f.File] && owner != nil && owner != e {
				return nil
			}
			if e.files[f.File] {
				owner = e
			}
		}
	}
	return owner
}

// rooted are the functions that call hooks while goja's profiler runs.
type rooted struct {
	p    *scripting.Profile
	file string
	by   map[int]goja.Value // by the number of arguments of the hook
}

// call returns a function that calls a hook with args, and its arguments.
func (r *rooted) call(v *vm, p *scripting.Profile, hook goja.Value, args []goja.Value) (goja.Callable, []goja.Value) {
	if r.by == nil || r.p != p {
		*r = rooted{p, profiling.join(p, v.prog), map[int]goja.Value{}}
	}
	if r.by[len(args)] == nil {
		var names []string
		for i := range args {
			names = append(names, fmt.Sprintf("a%d", i))
		}
		list := strings.Join(names, ",")
		code := fmt.Sprintf("(function(%s){return f(%s)})", strings.Join(append([]string{"f"}, names...), ","), list)
		fn, err := v.rt.RunScript(r.file, code)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		r.by[len(args)] = fn
	}
	call, _ := goja.AssertFunction(r.by[len(args)])
	return call, append([]goja.Value{hook}, args...)
}
