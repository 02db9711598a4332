package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weir-run/weir"

// A rule restricts imports. Packages are paths below the module; "" is the module
// itself. A pattern matches a package and everything below it; with a trailing
// "$" only the package itself.
type rule struct {
	of   []string // the imports to which the rule applies
	only []string // the packages that may have these imports
	why  string
}

// doors are the rules for third-party packages, each of which only a few packages
// may import.
var doors = []rule{
	{of: []string{"github.com/yuin/gopher-lua"}, only: []string{"scripting/lua"},
		why: "a VM is behind scripting's Language, Program and VM, so that another language is a folder and not a change"},
	{of: []string{"github.com/dop251/goja"}, only: []string{"scripting/js"},
		why: "a VM is behind scripting's Language, Program and VM, so that another language is a folder and not a change"},
	{of: []string{"github.com/evanw/esbuild"}, only: []string{"scripting/js", "ui/bundle"},
		why: "it turns scripts into JavaScript, and bundles the web UI when a developer changes it"},
	{of: []string{"github.com/expr-lang/expr"}, only: []string{"engine/expr"},
		why: "expressions run as our closures; nobody else may come to depend on the library's VM"},
	{of: []string{"aead.dev/minisign"}, only: []string{"engine/pkg$"},
		why: "the format of signatures is behind engine/pkg's keys and signatures"},
	{of: []string{"github.com/CycloneDX/cyclonedx-go"}, only: []string{"cmd/weir$"},
		why: "only weir sbom writes bills of materials"},
	{of: []string{"github.com/fsnotify/fsnotify"}, only: []string{"engine/watch"},
		why: "directories, debounce and hashes are solved once"},
	{of: []string{"github.com/grafana/alloy/syntax"}, only: []string{"engine/config", "engine/component$"},
		why: "the syntax package promises no stable API; engine/component has only the alias Secret"},
	{of: []string{"github.com/prometheus/prometheus"}, only: []string{"engine/batch", "engine/rule", "natives/discovery", "natives/prometheus", "natives/loki/logql", "stdlib", "cmd/weir/sandbox", "cmd/weirbench"},
		why: "Prometheus's types are the model of batches and of the prometheus.* components, not of the engine; scripts parse what it scrapes by its parser"},
	{of: []string{"github.com/prometheus/node_exporter"}, only: []string{"natives/prometheus/exporter/unix"},
		why: "its collectors have process-wide flags"},
	{of: []string{"github.com/grafana/loki"}, only: []string{"natives/loki"},
		why: "Loki's packages are heavy and in part AGPL"},
	{of: []string{"github.com/pierrec/lz4", "github.com/ulikunitz/xz"}, only: []string{"natives/loki/source/journal/internal/journalfile"},
		why: "only the journals of older systemds are compressed by them"},
	{of: []string{"github.com/yuin/goldmark"}, only: []string{"docs"},
		why: "the web UI shows HTML that it is given, whatever it was written in"},
	{of: []string{"github.com/go-git/go-git", "github.com/skeema/knownhosts", "golang.org/x/crypto/ssh"}, only: []string{"engine/pkg/remote/git"},
		why: "sources are fetched behind remote.Fetcher, so that the engine knows no protocol"},
	{of: []string{"oras.land/oras-go", "github.com/opencontainers/image-spec"}, only: []string{"engine/pkg/remote/oci", "engine/pkg/publish"},
		why: "sources are fetched behind remote.Fetcher, so that the engine knows no protocol"},
	{of: []string{"github.com/google/go-dap"}, only: []string{"scripting/debug"},
		why: "the messages of debuggers; commands pass them on as they are"},
	{of: []string{"charm.land/bubbletea/v2"}, only: []string{"cmd/weir$", "cmd/weir/top"},
		why: "only weir top draws a screen"},
	{of: []string{"github.com/hashicorp/go-plugin", "github.com/hashicorp/go-hclog"}, only: []string{"plugin"},
		why: "the engine knows plugins as a catalog"},
	{of: []string{"github.com/peterh/liner"}, only: []string{"cmd/weir$"},
		why: "only weir repl edits lines"},
	{of: []string{"github.com/go-zookeeper/zk"}, only: []string{"natives/remote/zookeeper"},
		why: "a store is behind the interface of engine/database"},
	{of: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "flag"}, only: []string{"cmd"},
		why: "flags are read where the process begins"},
}

// house are the rules for imports between our own packages.
var house = []rule{
	{of: []string{"engine$"}, only: []string{"cmd"},
		why: "components know the contract (engine/component), never the engine that runs them"},
	{of: []string{"cmd"}, only: []string{"cmd"},
		why: "nothing depends on a program"},
	{of: []string{"ui"}, only: []string{"cmd"},
		why: "the web UI uses the HTTP API; the service http gets its files from the program"},
	{of: []string{"docs"}, only: []string{"cmd"},
		why: "the documentation describes everything; nothing depends on it"},
	{of: []string{"natives"}, only: []string{"cmd", "natives$"},
		why: "no component imports another; code that a family shares lies in the family's internal folder"},
	{of: []string{"stdlib"}, only: []string{"cmd", "stdlib"},
		why: "languages bind the table they are given"},
	{of: []string{"plugin/host"}, only: []string{"cmd"},
		why: "plugins are found by programs; components do not know that they run in one"},
	{of: []string{"scripting/lua", "scripting/js"}, only: []string{"cmd"},
		why: "the core of scripting knows languages by their contract"},
	{of: []string{"scripting/registry"}, only: []string{"cmd", "scripting/scripttest"},
		why: "a catalog makes components and is made by programs; nodes do not look up scripts"},
	{of: []string{"scripting/node"}, only: []string{"cmd", "scripting/registry", "scripting/scripttest"},
		why: "the registry builds nodes; languages and functions of ctx do not know who calls them"},
	{of: []string{"scripting"}, only: []string{"cmd", "scripting", "stdlib"},
		why: "a scripted component is a component like any other; neither the engine nor the natives depend on scripts"},
}

// leaves may import only these of our packages.
var leaves = []struct {
	pkg, why string
	may      []string
}{
	{"engine/batch", "everything stands on it", nil},
	{"engine/api", "descriptions of routes: it serves none", nil},
	{"engine/audit", "entries and their file: it serves no request", []string{"engine/files"}},
	{"engine/clock$", "time has no dependencies", nil},
	{"engine/backoff", "intervals between attempts, whatever is attempted", []string{"engine/clock"}},
	{"engine/graph", "a DAG of names", nil},
	{"engine/stall$", "operations and their limits: it knows no component", []string{"engine/clock"}},
	{"engine/regex", "expressions and texts", nil},
	{"engine/scan", "text in, fields out", nil},
	{"engine/manual", "text in, lines out", nil},
	{"engine/files", "the file system, whatever is in the files", []string{"engine/files"}},
	{"engine/flow$", "the gate knows batches, not components", []string{"engine/batch"}},
	{"engine/component$", "the contract stands on data, gates and time", []string{"engine/batch", "engine/flow", "engine/clock", "engine/stall"}},
	{"engine/service$", "a service is asked by components", []string{"engine/batch", "engine/flow", "engine/clock", "engine/component"}},
	{"engine/flowchart", "it draws what a service sees of the nodes", []string{"engine/component", "engine/service"}},
	{"engine/journal", "blocks of bytes: it knows no component and no signal", []string{"engine/clock", "engine/files"}},
	{"engine/outbox", "batches on their way out: it knows no script and no protocol but HTTP", []string{
		"engine/backoff", "engine/batch", "engine/clock", "engine/component", "engine/flow", "engine/httpclient", "engine/journal", "engine/stall"}},
	{"engine/history", "what services see of the nodes", []string{"engine/clock", "engine/component", "engine/flow", "engine/service"}},
	{"engine/lastgood", "files and their text: it parses no config", []string{"engine/files"}},
	{"engine/tap", "batches as text: it knows no connection", []string{"engine/batch", "engine/component", "engine/config", "engine/expr", "engine/flow"}},
	{"engine/pkg$", "files and their digests: it compiles no script and parses no config", []string{"engine/files"}},
	{"engine/pkg/remote", "sources and their content: it compiles no script and parses no config", []string{"engine/component", "engine/files", "engine/httpclient", "engine/pkg$", "engine/pkg/remote$"}},
	{"engine/database", "values of a store: it knows no store and no signal", []string{"engine/backoff", "engine/component"}},
	{"engine/usage", "profiles of the process: it knows nodes by their names", []string{"engine/flow"}},
	{"engine/watch", "files, not components", []string{"engine/clock", "engine/files"}},
	{"natives/loki/source/journal/internal/journalfile$", "a file format: it knows no component and no signal", []string{"engine/files"}},
	{"stdlib", "the contract in scripting, expressions and logfmt", []string{"scripting$", "stdlib", "engine/regex", "engine/scan"}},
	{"scripting$", "the contract: it runs no script and does not know who does", []string{"engine/batch", "engine/component", "engine/config", "engine/expr", "engine/manual", "engine/outbox", "engine/regex", "engine/view", "scripting/grant", "scripting/operation", "scripting/state"}},
	{"scripting/block", "the block in the config: it knows no running script", []string{"engine/component", "engine/flow", "engine/httpclient", "engine/outbox", "engine/server", "engine/view", "scripting$", "scripting/grant", "scripting/state"}},
	{"scripting/host", "the functions of ctx: they know no node", []string{"engine/clock", "engine/component", "engine/config", "engine/flow", "engine/httpclient", "scripting$", "scripting/block", "scripting/egress", "scripting/grant", "scripting/state"}},
	{"scripting/grant", "patterns: it decides and does nothing", nil},
	{"scripting/debug", "the protocol of debuggers: it runs no script and knows no language", []string{"scripting$"}},
	{"scripting/egress", "the way out: it knows grants, no scripts", []string{"engine/files", "scripting/grant", "engine/httpclient"}},
	{"engine/expr", "expressions over columns", []string{"engine/batch", "engine/manual", "engine/regex"}},
	{"scripting/operation", "operations on records: it knows no language", []string{"engine/regex", "engine/view"}},
	{"scripting/state", "collections and their files: they know no script", []string{"engine/files"}},
	{"scripting/versions", "files and their text: it compiles and tests nothing", []string{"engine/files"}},
	{"scripting/quarantine", "files of text: it knows no script and no signal", []string{"engine/clock", "engine/files"}},
	{"engine/view", "records as scripts and expressions see them, whatever the language", []string{"engine/batch", "engine/scan", "engine/expr"}},
}

// exemptions are packages of natives and scripting that other packages may import,
// with the reason.
var exemptions = map[string]string{
	"scripting/grant":    "local.template grants programs with the patterns of scripts",
	"scripting/egress":   "local.template runs programs like scripts",
	"natives/loki/logql": "cmd prints whether LogQL is linked",
	"natives/loki/push":  "the push protocol of natives/loki, which weirbench's server decodes as well",
}

// internal reports whether pkg is an internal package of a family. The compiler
// restricts its imports.
func internal(pkg string) bool { return strings.Contains(pkg+"/", "/internal/") }

func TestImports(t *testing.T) {
	eachFile(t, func(pkg, file string, f *ast.File) {
		test := strings.HasSuffix(file, "_test.go") || strings.HasSuffix(pkg, "test")
		for _, spec := range f.Imports {
			imp := strings.Trim(spec.Path.Value, `"`)
			ours, isOurs := strings.CutPrefix(imp, module+"/")
			if !isOurs {
				ours = ""
			}
			if test { // tests may import the real implementations of what they fake otherwise
				continue
			}
			for _, r := range doors {
				if !isOurs && matchAny(r.of, imp) && !matchAny(r.only, pkg) {
					t.Errorf("%s imports %s, which only %s may: %s", file, imp, strings.Join(r.only, ", "), r.why)
				}
			}
			if !isOurs {
				continue
			}
			for _, r := range house {
				if matchAny(r.of, ours) && !matchAny(r.only, pkg) && pkg != ours && exemptions[ours] == "" && !internal(ours) {
					t.Errorf("%s imports %s, which only %s may: %s", file, ours, strings.Join(r.only, ", "), r.why)
				}
			}
			for _, l := range leaves {
				if match(l.pkg, pkg) && !matchAny(l.may, ours) && pkg != ours {
					t.Errorf("%s imports %s: %s may import only %v of ours: %s", file, ours, l.pkg, l.may, l.why)
				}
			}
		}
	})
}

// language matches names of script languages and of their files.
var language = regexp.MustCompile(`(?i)\b(lua|goja|javascript|typescript)\b|\.(lua|m?js|m?ts)\b`)

// TestEngineKnowsNoLanguage checks that the engine does not mention any language.
// It uses catalogs instead.
func TestEngineKnowsNoLanguage(t *testing.T) {
	eachFile(t, func(pkg, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || !match("engine", pkg) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING && language.MatchString(n.Value) {
					t.Errorf("%s has the text %s: what a language is called and how its files end belongs to scripting", file, n.Value)
				}
			case *ast.Ident:
				if language.MatchString(n.Name) {
					t.Errorf("%s has the name %s: no language belongs into the engine", file, n.Name)
				}
			}
			return true
		})
	})
}

// exits are calls that only a main package may make.
var exits = map[string][]string{
	"os":  {"Exit", "Getenv", "LookupEnv", "Environ"},
	"log": {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
}

func TestProcessBelongsToCmd(t *testing.T) {
	eachFile(t, func(pkg, file string, f *ast.File) {
		// A package whose name ends in test is for tests, which may start
		// processes.
		if f.Name.Name == "main" || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(pkg, "test") || match("cmd", pkg) {
			return
		}
		if strings.HasSuffix(file, ".pb.go") { // protoc generates an init
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s has an init: lists are written out, nothing registers itself", file)
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Obj == nil && slices.Contains(exits[x.Name], n.Sel.Name) {
					t.Errorf("%s calls %s.%s: the process and its environment belong to its main package", file, x.Name, n.Sel.Name)
				}
			}
			return true
		})
	})
}

// opens are calls that open a file by its path.
var opens = []string{"Open", "OpenFile", "ReadFile", "OpenRoot"}

// opening are the packages and files that may open files without engine/files,
// which limits the cost of a FIFO, a device or an unresponsive file system.
var opening = []struct{ at, why string }{
	{"engine/files", "it is the way"},
	{"engine/audit", "it appends to its file, in weir's storage directory"},
	{"engine/journal", "it writes its segments, in weir's storage directory"},
	{"engine/storage", "it locks weir's storage directory"},
	{"engine/control/address_linux.go", "it opens the directory of the socket that it listens on"},
	{"engine/control/token.go", "it writes a token, in weir's storage directory"},
	{"scripting/state", "it writes its files, in weir's storage directory"},
	{"scripting/egress/file.go", "it opens below a granted directory, without blocking, in a call of engine/files"},
	{"natives/loki/source/file", "log files are read for as long as they grow; it opens them without blocking and refuses what is not regular"},
	{"natives/docs/gen", "it generates source code"},
	{"ui/bundle", "it reads the sources of the web UI in the checkout"},
	{"engine/glob/glob.go", "an fs.FS must have Open; patterns only stat and list"},
	{"cmd/weir/memory", "it reads /proc"},
	{"cmd/weir/support_bundle.go", "it creates a file, and fails if it exists"},
	{"cmd/weir/repl_history.go", "it appends to its file, in the user's cache directory"},
	{"cmd/weirbench", "a load generator reads its own files"},
}

// TestFilesAreOpenedInOnePlace checks that files are read with engine/files.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(pkg, "test") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); !ok || x.Obj != nil || x.Name != "os" || !slices.Contains(opens, sel.Sel.Name) {
				return true
			}
			for _, o := range opening {
				if match(o.at, file) {
					used[o.at] = true
					return true
				}
			}
			t.Errorf("%s calls os.%s: use engine/files, which does not wait for a FIFO or a dead file system and has a limit", file, sel.Sel.Name)
			return true
		})
	})
	for _, o := range opening {
		if !used[o.at] {
			t.Errorf("%s opens no file any more: remove it from the list", o.at)
		}
	}
}

func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	seen := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		seen[pkg] = true
		if f.Doc != nil {
			comments[pkg] = append(comments[pkg], file)
		}
	})
	for pkg := range seen {
		if n := len(comments[pkg]); n != 1 {
			t.Errorf("package %s has %d package comments %v, want one", pkg, n, comments[pkg])
		}
	}
}

// TestLeaksFail checks that packages with goroutines detect leaks.
func TestLeaksFail(t *testing.T) {
	needed := map[string]bool{}
	checked := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		test := strings.HasSuffix(file, "_test.go")
		if test && slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"go.uber.org/goleak"` }) {
			checked[pkg] = true
		}
		if test || strings.HasSuffix(pkg, "test") || !(match("engine", pkg) || match("scripting", pkg) || match("natives", pkg)) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				needed[pkg] = true
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && n.Sel.Name == "Go" && strings.Contains(strings.ToLower(x.Name), "wg") {
					needed[pkg] = true
				}
			}
			return true
		})
	})
	for pkg := range needed {
		if !checked[pkg] {
			t.Errorf("package %s starts goroutines and has no goleak in its TestMain", pkg)
		}
	}
}

// eachFile calls fn with every parsed Go file of the module and its package path
// below the module.
func eachFile(t *testing.T, fn func(pkg, file string, f *ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, modErr := os.Stat(filepath.Join(p, "go.mod"))
			if p != root && (modErr == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		fn(path.Dir(rel), rel, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func matchAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, pkg) })
}

func match(pattern, pkg string) bool {
	if exact, ok := strings.CutSuffix(pattern, "$"); ok {
		return pkg == exact
	}
	return pkg == pattern || strings.HasPrefix(pkg, pattern+"/")
}
