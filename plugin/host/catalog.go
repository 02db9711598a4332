// Package host runs plugins: processes with components, described in
// docs/writing-plugins.md. A Catalog finds them by their file names. The engine cannot
// tell their components from native ones.
//
// A process is started when a component of it is looked up, and is shared by all nodes
// that use the same binary. If it ends, it is started again with back-off, and its nodes
// are created again with their arguments.
package host

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/plugin/protocol"
)

// Options are the options of New.
type Options struct {
	// Dirs are the folders with plugins. If several have a plugin of the same name, that
	// of the first folder is used. They need not exist.
	Dirs []string
	// Env is the environment of the processes, as NAME=VALUE.
	Env []string
	// Logger gets what plugins write to their standard error. It may be nil.
	Logger *slog.Logger
}

// Catalog is the catalog of the components in plugins. All methods are safe for
// concurrent use.
type Catalog struct {
	o Options

	mu       sync.Mutex
	programs map[string]*found // by path
	procs    map[*process]bool // that have not ended
	closed   bool
	loading  sync.Mutex // one binary is examined at a time
}

// found is what is known about a file.
type found struct {
	size     int64
	modified time.Time
	program  *program
}

var _ component.Catalog = (*Catalog)(nil)

// New returns the catalog of the plugins in some folders.
func New(o Options) *Catalog {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for i, dir := range o.Dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			o.Dirs[i] = abs
		}
	}
	return &Catalog{o: o, programs: map[string]*found{}, procs: map[*process]bool{}}
}

// Close ends all processes and waits until they have ended.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	procs := make([]*process, 0, len(c.procs))
	for p := range c.procs {
		procs = append(procs, p)
	}
	c.mu.Unlock()
	for _, p := range procs {
		_ = p.end(errStopped, false)
	}
	for _, p := range procs {
		p.killed.Wait()
	}
}

func (c *Catalog) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Catalog) started(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.procs[p] = true
}

func (c *Catalog) ended(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.procs, p)
}

// prefix is the beginning of the file names of plugins.
const prefix = "weir-plugin-"

// suffix is the end of the file names of plugins.
func suffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// files returns the paths of the plugins by namespace.
func (c *Catalog) files() map[string]string {
	out := map[string]string{}
	for _, dir := range slices.Backward(c.o.Dirs) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it need not exist
		}
		for _, e := range entries {
			name, ok := strings.CutPrefix(e.Name(), prefix)
			name, exe := strings.CutSuffix(name, suffix())
			if ok && exe && identifier.MatchString(name) && !e.IsDir() {
				out[name] = filepath.Join(dir, e.Name())
			}
		}
	}
	return out
}

// find returns the path of a plugin, or "". The engine looks up every block, so this does
// not list the folders.
func (c *Catalog) find(namespace string) string {
	for _, dir := range c.o.Dirs {
		path := filepath.Join(dir, prefix+namespace+suffix())
		if fi, err := os.Stat(path); err == nil && !fi.IsDir() {
			return path
		}
	}
	return ""
}

// Lookup returns the registration of a component. It starts the plugin if the binary is
// not known yet.
func (c *Catalog) Lookup(name string) (component.Registration, bool) {
	namespace, _, dotted := strings.Cut(name, ".")
	path := ""
	if dotted && identifier.MatchString(namespace) {
		path = c.find(namespace)
	}
	if path == "" {
		return component.Registration{}, false
	}
	p := c.program(path)
	if p.err != nil {
		return component.Registration{Name: name, Version: p.digest, Sources: []string{path}, Err: p.err}, true
	}
	k, ok := p.regs[name]
	if !ok {
		return component.Registration{}, false
	}
	return k.registration(), true
}

// Names returns the names of all components.
func (c *Catalog) Names() (names []string) {
	for _, path := range c.files() {
		for name := range c.program(path).regs {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Roots returns patterns of the plugins in each folder. The folders themselves may contain
// anything: one is that of the weir binary.
func (c *Catalog) Roots() (patterns []string) {
	for _, dir := range c.o.Dirs {
		patterns = append(patterns, filepath.Join(dir, prefix+"*"))
	}
	return patterns
}

// Refresh examines files again at the next Lookup.
func (c *Catalog) Refresh(paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, path := range paths {
		if f := c.programs[path]; f != nil {
			f.size = -1
		}
	}
}

// program returns the program at a path. It starts a new binary once, to describe it.
func (c *Catalog) program(path string) *program {
	c.loading.Lock()
	defer c.loading.Unlock()
	fi, err := os.Stat(path)
	if err != nil {
		return &program{c: c, path: path, err: fmt.Errorf("cannot read the plugin: %w", err)}
	}
	c.mu.Lock()
	f := c.programs[path]
	known := f != nil && f.size == fi.Size() && f.modified.Equal(fi.ModTime())
	c.mu.Unlock()
	if known {
		return f.program
	}
	p := c.load(path, fi)
	if f != nil && f.program.digest == p.digest && f.program.err == nil {
		p = f.program
	} else if p.err == nil {
		p.describe()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs[path] = &found{fi.Size(), fi.ModTime(), p}
	return p
}

// load reads a binary.
func (c *Catalog) load(path string, fi fs.FileInfo) *program {
	p := &program{c: c, path: path, size: fi.Size(), modified: fi.ModTime()}
	switch {
	case !fi.Mode().IsRegular():
		p.err = fmt.Errorf("cannot use the plugin %s: it is not a file", path)
	case runtime.GOOS != "windows" && fi.Mode()&0o111 == 0:
		p.err = fmt.Errorf("cannot use the plugin %s: it is not executable; run chmod +x", path)
	default:
		p.digest, p.err = digestOf(path)
	}
	return p
}

// describe asks the plugin for its components.
func (p *program) describe() {
	// Lookup has no context, and the time is limited.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	proc, err := p.acquire(ctx)
	if err != nil {
		p.err = err
		return
	}
	defer proc.release()
	desc, err := proc.service.Describe(ctx, &protocol.DescribeRequest{})
	if err != nil {
		p.err = fmt.Errorf("cannot use the plugin %s: it does not describe its components: %w", p.path, err)
		_ = proc.fail(p.err)
		return
	}
	p.desc, p.regs = desc, map[string]*kind{}
	namespace := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(p.path), prefix), suffix())
	for _, c := range desc.Components {
		k, err := newKind(p, namespace, c)
		if err == nil && p.regs[c.GetName()] != nil {
			err = fmt.Errorf("it is described twice")
		}
		if err != nil {
			p.err, p.regs = fmt.Errorf("cannot use the plugin %s: its description of component %q is not valid: %w", p.path, c.GetName(), err), nil
			_ = proc.fail(p.err)
			return
		}
		p.regs[c.Name] = k
	}
}

// Info describes a plugin for people.
type Info struct {
	Namespace  string   `json:"namespace"`
	Path       string   `json:"path"`
	Digest     string   `json:"sha256"`
	Version    string   `json:"version"`
	Licence    string   `json:"licence"`
	Components []string `json:"components"`
	Error      string   `json:"error,omitempty"` // why it cannot be used
}

// List returns the plugins in the folders, by name.
func (c *Catalog) List() (out []Info) {
	paths := c.files()
	for namespace, path := range paths {
		p := c.program(path)
		i := Info{Namespace: namespace, Path: path, Digest: p.digest, Components: []string{}}
		if p.err != nil {
			i.Error = p.err.Error()
		} else {
			i.Version, i.Licence = p.desc.Version, p.desc.Licence
		}
		for name := range p.regs {
			i.Components = append(i.Components, name)
		}
		slices.Sort(i.Components)
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}
