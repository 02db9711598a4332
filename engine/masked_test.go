package engine_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// locked is test.locked, which has a password.
type locked struct {
	Password component.Secret `alloy:"password,attr,optional"`
}

// Run waits.
func (*locked) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// TestMaskedConfig: the text of the config that runs and of the one on disk, with the
// modules that they import, contains no secret, wherever it is written.
func TestMaskedConfig(t *testing.T) {
	bubble(t, func(l *harness) {
		l.options.Catalogs = []component.Catalog{component.NewList(component.Registration{
			Name: "test.locked", NewArgs: func() any { return new(locked) },
			Build: func(_ component.Options, args any, _ component.Component) (component.Component, error) {
				return args.(*locked), nil
			},
		})}
		module := filepath.Join(l.dir, "m.alloy")
		if err := os.WriteFile(module, []byte("declare \"m\" {\n  argument \"word\" { }\n  test.locked \"p\" {\n    password = argument.word.value\n  }\n  test.locked \"q\" {\n    password = \"hunter3\"\n  }\n}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		const text = `import.file "i" {
  filename = "m.alloy"
}
i.m "a" {
  word = "hunter2"
}
test.value "v" {
  value = "not hunter2"
}
`
		l.start(text)
		got, err := l.e.RunningConfig(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(strings.ReplaceAll(text, "not hunter2", "(secret)"), "hunter2", "(secret)")
		if got[l.config] != want {
			t.Errorf("got %s, want %s", got[l.config], want)
		}
		if !strings.Contains(got[module], "argument.word.value") || strings.Contains(got[module], "hunter3") {
			t.Errorf("the module: %s", got[module])
		}

		l.write(text + "test.locked \"b\" {\n  passwort = \"hunter4\"\n  password = [\"hunter5\"]\n}\n")
		files, ds := l.newEngine().CheckMasked(l.config)
		if n := len(ds); n != 2 || !ds.HasErrors() {
			t.Errorf("got %d diagnostics: %v", n, ds)
		}
		all := fmt.Sprint(files, ds, ds.Error())
		if strings.Contains(all, "hunter") {
			t.Errorf("a secret is shown: %s", all)
		}
		if got, want := slices.Sorted(maps.Keys(files)), []string{l.config, module}; !slices.Equal(got, want) {
			t.Errorf("got files %q, want %q", got, want)
		}
		if _, ds := l.newEngine().CheckMasked(filepath.Join(l.dir, "missing")); len(ds) != 1 || !strings.Contains(ds[0].Msg, "no such file") {
			t.Errorf("a missing config: %v", ds)
		}
	})
}

// TestMaskedConfigEnds: somebody who asks for the config of an engine that has ended gets an error.
func TestMaskedConfigEnds(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(`test.value "v" { }`)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		l.end()
		if _, err := l.e.RunningConfig(ctx); err == nil {
			t.Error("there is a config")
		}
	})
}

// TestMaskedMistakes: what is said about a config that was refused, a module that cannot be used and
// a preview contains no secret: not the records of reloads, not the state, not the log, not the
// response to the request, and not what is announced.
func TestMaskedMistakes(t *testing.T) {
	bubble(t, func(l *harness) {
		l.options.Catalogs = []component.Catalog{component.NewList(component.Registration{
			Name: "test.locked", NewArgs: func() any { return new(locked) },
			Build: func(_ component.Options, args any, _ component.Component) (component.Component, error) {
				return args.(*locked), nil
			},
		})}
		var logged strings.Builder
		var mu sync.Mutex
		l.options.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))
		module := filepath.Join(l.dir, "m.alloy")
		modules := func(text string) {
			if err := os.WriteFile(module, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		const good = "declare \"m\" {\n  test.locked \"q\" {\n    password = \"hunter3\"\n  }\n}\n"
		modules(good)
		const text = "import.file \"i\" {\n  filename = \"m.alloy\"\n}\ni.m \"a\" { }\ntest.locked \"p\" {\n  password = \"hunter2\"\n}\n"
		l.start(text)
		said := func() string {
			l.mu.Lock()
			defer l.mu.Unlock()
			return strings.Join(l.lines, "\n")
		}
		check := func(what, line string) {
			t.Helper()
			o := l.e.Overview()
			_, err := l.e.RequestReload(context.Background(), false)
			_, previewed := l.e.PreviewReload(context.Background(), "", "")
			mu.Lock()
			defer mu.Unlock()
			all := fmt.Sprintf("%s\n%+v\n%s\n%v\n%v\n%+v\n%s\n", said(), l.e.Reloads(), o.ConfigError, err, previewed, l.e.ListComponents(), logged.String())
			if strings.Contains(all, "hunter") {
				t.Errorf("%s: a secret is shown:\n%s", what, all)
			}
			if !strings.Contains(all, line) {
				t.Errorf("%s: the line %q is not shown:\n%s", what, line, all)
			}
		}
		for what, mistake := range map[string]struct{ block, line string }{
			"a type":          {"test.locked \"b\" {\n  password = [\"hunter5\"]\n}\n", `password = ["(secret)"]`},
			"a name":          {"test.locked \"b\" {\n  passwort = \"hunter4\"\n}\n", `passwort = "(secret)"`},
			"syntax":          {"test.locked \"b\" {\n  password = \"hunter6\" \"x\"\n}\n", `password = (secret)`},
			"another block":   {"test.unknown \"b\" {\n  x = \"has hunter2 in it\"\n}\n", `test.unknown`},
			"the same line":   {"test.locked \"b\" { password = \"hunter7\", x = 1 }\n", `(secret)`},
			"a removed value": {"test.value \"b\" {\n  value = \"hunter2\"\n  nothing = \"hunter2\"\n}\n", `nothing = "(secret)"`},
		} {
			cfg := text + mistake.block
			if what == "a removed value" { // only the config that runs says that it is a secret
				cfg = mistake.block
			}
			l.write(cfg)
			_ = l.e.Reload(context.Background())
			if l.e.Overview().ConfigError == "" {
				t.Errorf("%s: the config was not refused", what)
			}
			check(what, mistake.line)
		}
		l.write(text)
		if err := l.e.Reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		modules(strings.Replace(good, `"hunter3"`, `["hunter8"]`, 1))
		_ = l.e.FilesChanged(context.Background(), []string{module})
		check("a module", `password = ["(secret)"]`)
	})
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
