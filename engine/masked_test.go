package engine_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
