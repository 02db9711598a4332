package scripttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
)

// session is one test file in one VM: what describe and it said, and what runs
// at the moment.
type session struct {
	// ctx is of the run. It is stored because VMs call the test API without a context.
	ctx    context.Context
	folder registry.Folder
	langs  []scripting.Language
	file   scripting.File
	vm     scripting.TestVM

	top     *group
	at      *group // that is being described
	all     []*testCase
	benches []*benchCase
	mocks   mocks
	chaos   *chaos   // nil: none
	known   []opened // every block that was opened
	words   scripting.TestWords
	running bool // tests, which are all declared
	inTest  bool

	nodes     []*testNode // opened while the file was read
	opened    []*testNode // opened in the test that runs
	output    testOutput
	lastError string // that assert.error met
	test      string // that runs; "": none
	seed      uint64
	limit     time.Duration // of a test
	foralls   int           // in the test that runs
	// scriptFailed is whether a script failed in forall.
	scriptFailed bool
	snaps        *snapshots      // nil: no test runs
	used         map[string]bool // paths of files that matter to the tests

	pipelines *Pipelines // nil: there are none
	modules   []*scripting.Module
	probe     *scripting.Probe
	// filePipelines were opened while the file was read, openedPipelines in the test that
	// runs.
	filePipelines, openedPipelines []*pipeline

	componentKind, pipelineKind, sinkKind *scripting.ObjectType
}

// encoder returns the function encode of the module json.
func encoder(modules []*scripting.Module) func(scripting.Value) (string, error) {
	return func(v scripting.Value) (string, error) {
		for _, m := range modules {
			if m.Name != "json" {
				continue
			}
			encode, _ := m.Func("encode")
			text, err := encode.Call(nil, []scripting.Value{v})
			if err != nil {
				return "", err
			}
			return text.(string), nil
		}
		return "", errors.New("there is no module json")
	}
}

// newSession compiles a test file and runs it, so that its tests are known.
func newSession(ctx context.Context, s suite, f scripting.File, lang scripting.Tester) (*session, error) {
	ses := &session{ctx: ctx, folder: s.folder, langs: s.langs, file: f, seed: s.seed, limit: s.limit, words: lang.Words(), top: &group{}, used: map[string]bool{f.Path: true},
		pipelines: s.pipelines, modules: s.modules, probe: s.probe}
	ses.mocks.words, ses.mocks.encode = ses.words, encoder(s.modules)
	ses.at = ses.top
	vm, err := lang.NewTest(f, ses.env(s, lang), ses.api())
	if err != nil {
		return nil, err
	}
	ses.vm = vm
	err = vm.Load(s.limit)
	s.took(vm.Used())
	if err != nil {
		return nil, errors.Join(err, ses.close())
	}
	return ses, nil
}

// env is what the test file may require, which is noted.
func (s *session) env(in suite, lang scripting.Language) scripting.Env {
	env := in.folder.Env(lang)
	env.Modules, env.Probe = in.modules, in.probe
	require, load := env.Require, env.Import
	env.Require = func(name string) (scripting.File, error) {
		m, err := require(name)
		s.used[m.Path] = true
		return m, err
	}
	env.Import = func(from scripting.File, path string) (scripting.File, error) {
		m, err := load(from, path)
		s.used[m.Path] = true
		return m, err
	}
	return env
}

// close ends the components that are still open. The error is the first that
// a teardown met.
func (s *session) close() error {
	err := errors.Join(s.closeOpened(), closeAll(s.nodes), closePipelines(s.filePipelines))
	s.nodes, s.filePipelines = nil, nil
	return err
}

func (s *session) closeOpened() error {
	err := errors.Join(closeAll(s.opened), closePipelines(s.openedPipelines))
	s.opened, s.openedPipelines = nil, nil
	return err
}

func closePipelines(ps []*pipeline) (first error) {
	for _, p := range ps {
		if err := p.close(); first == nil {
			first = err
		}
	}
	return first
}

func closeAll(nodes []*testNode) (first error) {
	for _, n := range nodes {
		if n.over {
			continue
		}
		n.begin()
		n.stop()
		if err := n.failure(); first == nil {
			first = err
		}
	}
	return first
}

// open implements weir.test.component, for a file next to the test or for a
// block name. at is the time at which the clock begins.
func (s *session) open(what string, args scripting.Value, at time.Time) (*testNode, error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	name, err := s.component(what)
	if err != nil {
		return nil, err
	}
	var fields []config.Field
	if r, ok := s.folder.Catalog.Lookup(name); ok {
		for _, path := range r.Sources {
			s.used[path] = true
		}
		if r.NewArgs != nil {
			fields = config.Describe(r.NewArgs())
		}
	}
	body, err := attributes(args, fields)
	if err != nil {
		return nil, fmt.Errorf("cannot use these arguments of %s: %w", name, err)
	}
	n, err := newNodeAt(s.ctx, at, s.mocks.catalog(s.folder.Catalog, !has(args, "script", "allow")), name, body, noPosition)
	if denied := s.mocks.takeDenied(); denied != nil {
		if err == nil {
			n.stop()
		}
		return nil, denied
	}
	if err != nil {
		return nil, fmt.Errorf("cannot test %s: %w", name, unplaced(err))
	}
	n.known = s.addBlock(opened{name: name, body: body, args: args})
	if s.inTest {
		s.opened = append(s.opened, n)
	} else {
		s.nodes = append(s.nodes, n)
	}
	return n, nil
}

// has reports whether there is a value at a path of keys.
func has(v scripting.Value, path ...string) bool {
	for _, k := range path {
		m, ok := v.(*scripting.Map)
		if !ok {
			return false
		}
		if v, ok = m.Get(k); !ok {
			return false
		}
	}
	return true
}

// addBlock keeps a block that was opened, and returns its index.
func (s *session) addBlock(o opened) int {
	i := slices.IndexFunc(s.known, func(k opened) bool { return k.name == o.name && k.body == o.body })
	if i < 0 {
		i = len(s.known)
		s.known = append(s.known, o)
	}
	return i
}

// component returns the block name of a file next to the test file, or its
// argument if it is a block name.
func (s *session) component(what string) (string, error) {
	for _, l := range s.langs {
		for _, ext := range l.Extensions() {
			if !strings.HasSuffix(what, ext) {
				continue
			}
			full := filepath.Join(filepath.Dir(s.file.Path), filepath.FromSlash(what))
			rel, err := filepath.Rel(s.folder.Dir, full)
			if err != nil || !filepath.IsLocal(rel) {
				return "", fmt.Errorf("cannot test %s: it is not in the scripts folder %s", what, display(s.folder.Dir))
			}
			name := strings.ReplaceAll(strings.TrimSuffix(filepath.ToSlash(rel), ext), "/", ".")
			if s.folder.Namespace != "" {
				name = s.folder.Namespace + "." + name
			}
			if _, ok := s.folder.Catalog.Lookup(name); !ok {
				return "", fmt.Errorf("cannot test %s: there is no such component; the path counts from the folder of the test file", what)
			}
			return name, nil
		}
	}
	return what, nil
}

// sortedSources are the paths of used; one without a path ships with weir.
func sortedSources(used map[string]bool) []string {
	out := slices.Sorted(maps.Keys(used))
	return slices.DeleteFunc(out, func(p string) bool { return p == "" })
}
