package host

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/grant"
)

// Outside contains the external resources of scripts. A nil field stands for
// the real resource, except LookupEnv, without which no variable is set: only
// the main package reads the process's environment. All fields are safe for
// concurrent use.
type Outside struct {
	// HTTP replaces the network.
	HTTP http.RoundTripper
	// WrapHTTP returns what sends requests instead of next, HTTP or the network.
	WrapHTTP func(next http.RoundTripper) http.RoundTripper
	// LookupEnv returns an environment variable.
	LookupEnv func(name string) (value string, ok bool)
	// ReadFile returns the content of a file, given by its absolute path, of at
	// most limit bytes. If it is larger, the error wraps egress.ErrTooLarge.
	ReadFile func(path string, limit int64) ([]byte, error)
	// Exec runs a program.
	Exec func(ctx context.Context, c egress.Command) (egress.CommandResult, error)
	// GrantAll grants all needs of scripts, even without grants in their blocks.
	// It is for tests, in which the resources are not real, and for weir run --try, by
	// which the user of the script grants them.
	GrantAll bool
	// GrantPrivate also grants requests to private networks, which a pattern with a
	// star does not.
	GrantPrivate bool
	// Manual delays automatic actions: a source is first polled after its
	// interval, or by Component.Poll.
	Manual bool
}

// Access contains the resources that one instance of a node may use: those that
// its script needs and its block grants.
type Access struct {
	name     string // of the component, for messages
	needs    scripting.Needs
	grants   grant.Set
	modules  []*scripting.Module
	outcomes *Outcomes // nil: not counted
	outside  Outside
	env      map[string]string
	http     *egress.Client // nil: not needed
	commands []grant.Command
	storage  string    // weir's storage directory, links resolved; "" for none
	recorder *Recorder // nil: nothing is recorded

	mu         sync.Mutex
	seen       map[reading][32]byte // files that setup has read: their content's hash
	setup      []component.Answer   // that setup got
	setupBytes int                  // of setup
}

// AccessOptions are the options of NewAccess.
type AccessOptions struct {
	Name     string // of the component, for messages
	Needs    scripting.Needs
	Allow    *block.Allow // of the node
	Client   httpclient.Arguments
	Modules  []*scripting.Module // the standard library
	Outside  Outside
	Outcomes *Outcomes
	Recorder *Recorder // nil: nothing is recorded

	UserAgent string
	Storage   string // weir's storage directory; "" for none
}

// NewAccess returns the resources that a node may use. The error describes
// missing grants.
func NewAccess(o AccessOptions) (*Access, error) {
	g, err := o.Allow.Grants()
	if err != nil {
		return nil, err
	}
	w := &Access{name: o.Name, needs: o.Needs, modules: o.Modules, outside: o.Outside, outcomes: o.Outcomes, recorder: o.Recorder}
	if o.Storage != "" {
		w.storage = resolve(o.Storage)
	}
	if o.Outside.GrantAll {
		g = grantAll(w.needs)
	}
	w.grants = g
	if e := block.MissingError(o.Name, o.Allow, block.MissingGrants(w.needs, g)); e != nil {
		return nil, fmt.Errorf("%w\n%s", e.Err, e.Detail)
	}
	w.env = map[string]string{}
	for _, name := range w.needs.Env {
		if w.outside.LookupEnv == nil {
			break
		}
		if v, ok := w.outside.LookupEnv(name); ok {
			w.env[name] = v
		}
	}
	for _, c := range g.Commands {
		if len(w.needs.Programs) == 0 || slices.ContainsFunc(w.needs.Programs, c.Is) {
			w.commands = append(w.commands, c)
		}
	}
	if w.needs.HTTP {
		w.http, err = egress.New(egress.Options{
			Granted: g.URLs, Needed: w.needs.URLs, Private: w.outside.GrantPrivate, Settings: o.Client,
			UserAgent: o.UserAgent, Transport: w.outside.HTTP, Wrap: w.outside.WrapHTTP,
		})
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// grantAll grants all needs.
func grantAll(n scripting.Needs) (g grant.Set) {
	if g.URLs = n.URLs; n.HTTP && len(g.URLs) == 0 {
		for _, s := range []string{"http://*:*/*", "https://*:*/*"} {
			u, err := grant.ParseURL(s)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			g.URLs = append(g.URLs, u)
		}
	}
	for _, name := range n.Env {
		if p, err := grant.ParseEnv(name); err == nil {
			g.Env = append(g.Env, p)
		}
	}
	if g.Files = n.Files; n.Read && len(g.Files) == 0 {
		g.AnyFile = true
	}
	g.AnyCommand = n.Exec && len(n.Programs) == 0
	for _, name := range n.Programs {
		if !strings.ContainsAny(name, `/\`) {
			name = anyFolder + name
		}
		if p, err := grant.ParseCommand("'" + name + "'"); err == nil {
			g.Commands = append(g.Commands, p)
		}
	}
	return g
}

// anyFolder is the folder of programs that are never run.
const anyFolder = "/usr/bin/"

// Sourced returns the absolute paths of the readable files that can be watched.
// Virtual files, which the system generates on access, cannot be watched.
func (w *Access) Sourced() (paths []string) {
	if w.outside.ReadFile != nil || !w.needs.Read {
		return nil
	}
	for _, p := range w.grants.Files {
		path, ok := p.Watched()
		if ok && !slices.ContainsFunc([]string{"/proc/", "/sys/", "/dev/"}, func(made string) bool { return strings.HasPrefix(path, made) }) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Close closes connections.
func (w *Access) Close() {
	if w.http != nil {
		w.http.Close()
	}
}

// read reads a granted file.
func (w *Access) read(path string, limit int64) ([]byte, error) {
	granted := func(ps []grant.File) (dir, rel string, ok bool, err error) {
		for _, p := range ps {
			if dir, rel, ok, err = p.Match(path); ok || err != nil {
				return dir, rel, ok, err
			}
		}
		return "", "", false, nil
	}
	dir, rel, ok, err := granted(w.grants.Files)
	if err != nil {
		return nil, err
	}
	if !ok && !w.grants.AnyFile {
		return nil, &egress.DeniedError{Err: fmt.Errorf("cannot read %q: script.allow.read of the block does not grant it", path)}
	}
	if len(w.needs.Files) > 0 {
		if _, _, ok, _ := granted(w.needs.Files); !ok {
			return nil, &egress.DeniedError{Err: fmt.Errorf("cannot read %q: needs.read of the script does not name it", path)}
		}
	}
	if w.outside.ReadFile != nil {
		return w.outside.ReadFile(path, limit)
	}
	if w.stored(path) {
		return nil, &egress.DeniedError{Err: fmt.Errorf("cannot read %q: it is in weir's storage directory", path)}
	}
	return egress.ReadFile(dir, rel, limit)
}

// stored reports whether a path leads into weir's storage directory, which no
// grant opens: it contains the token of the API, and the data of other nodes.
func (w *Access) stored(path string) bool {
	if w.storage == "" {
		return false
	}
	rel, err := filepath.Rel(w.storage, resolve(path))
	return err == nil && filepath.IsLocal(rel)
}

// resolve resolves the links in a path. If the path does not exist, it resolves
// the links in its folder.
func resolve(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// command returns the path of the program for a name, and checks its arguments.
func (w *Access) command(name string, args []string) (path string, err error) {
	var meant []grant.Command
	var paths []string
	for _, c := range w.commands {
		if c.Is(name) {
			meant = append(meant, c)
			paths = append(paths, c.Path())
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	switch {
	case len(paths) == 0 && w.grants.AnyCommand:
		if strings.ContainsAny(name, `/\`) {
			return name, nil
		}
		return anyFolder + name, nil
	case len(paths) == 0:
		return "", &egress.DeniedError{Err: fmt.Errorf("cannot run %q: both needs.exec of the script and script.allow.exec of the block must name it", name)}
	case len(paths) > 1:
		return "", fmt.Errorf("cannot run %q: the name is ambiguous because script.allow.exec grants %s; use the full path", name, strings.Join(paths, " and "))
	case !slices.ContainsFunc(meant, func(c grant.Command) bool { return c.MatchArgs(args) }):
		return "", &egress.DeniedError{Err: fmt.Errorf("cannot run %s with these arguments: script.allow.exec grants it with different arguments", paths[0])}
	}
	return paths[0], nil
}
