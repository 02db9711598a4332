// Package registrytest contains helpers for tests of scripted components: a
// folder of scripts with its catalog, and arguments of blocks.
package registrytest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
)

// Script is a transform that does nothing.
const Script = "local weir = require \"weir\"\nreturn weir.transform { metrics = function(batch) end }\n"

// Other is Lua with another file extension.
type Other struct{ *lua.Language }

// Name returns the name of the language.
func (Other) Name() string { return "other" }

// Extensions returns the extensions of its files.
func (Other) Extensions() []string { return []string{".other"} }

// Folder is a folder of scripts on disk.
type Folder struct {
	T   testing.TB
	Dir string
}

// NewFolder returns the folder scripts of a new working directory.
func NewFolder(t testing.TB) Folder {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	return Folder{t, filepath.Join(dir, "scripts")}
}

// Write writes a file at a slash path below the folder, and returns its path.
func (f Folder) Write(path, text string) string {
	f.T.Helper()
	full := filepath.Join(f.Dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		f.T.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		f.T.Fatal(err)
	}
	return full
}

// Catalog returns the catalog of the folder and of the given embedded scripts.
func (f Folder) Catalog(embedded map[string]string) component.Catalog {
	f.T.Helper()
	files := fstest.MapFS{}
	for path, text := range embedded {
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	c, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New(), Other{lua.New()}}, UserDir: f.Dir, Embedded: files,
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return c
}

// Lookup returns the registration of a name. It must exist.
func Lookup(t testing.TB, c component.Catalog, name string) component.Registration {
	t.Helper()
	r, ok := c.Lookup(name)
	if !ok {
		t.Fatalf("%s is not known; known are %v", name, c.Names())
	}
	if r.Name != name {
		t.Errorf("got the registration of %q for %q", r.Name, name)
	}
	return r
}

// Decode decodes the attributes of a block into args, with sink as forward_to
// if the component sends data.
func Decode(args any, attrs string, sink *flowtest.Sink) error {
	if !reflect.ValueOf(args).Elem().FieldByName("ForwardTo").IsValid() {
		return Evaluate(args, Patient(attrs), nil)
	}
	return Evaluate(args, "forward_to = [sink]\n"+Patient(attrs), sink.Receiver())
}

// Patient gives scripts more time than the default, unless attrs sets a limit:
// the machine may be busy, and the race detector is slow.
func Patient(attrs string) string {
	const limits = "script {\nlimits { time = \"10s\" }\n"
	if strings.Contains(attrs, "limits") {
		return attrs
	}
	if before, after, ok := strings.Cut(attrs, "script {"); ok {
		return before + limits + after
	}
	return attrs + "\n" + limits + "}"
}

// Evaluate decodes the attributes of a block into args, in which r is sink.
func Evaluate(args any, attrs string, r *flow.Receiver) error {
	file, err := parser.ParseFile("test.alloy", []byte(attrs))
	if err != nil {
		return err
	}
	return vm.New(file).Evaluate(vm.NewScope(map[string]any{"sink": r}), args)
}

// Text returns the samples of a text, at 1 s.
func Text(t testing.TB, source uint64, s string) *batch.Metrics {
	t.Helper()
	b, err := batch.ParseText(s, batch.TextOptions{T: 1000, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Same reports a difference of two texts.
func Same(t testing.TB, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
