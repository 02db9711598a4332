package engine_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

var update = flag.Bool("update", false, "rewrite what the cases in testdata want")

// cases calls f for each testdata/dir/*.txtar; f may change the archive's
// expectations, which -update writes back.
func cases(t *testing.T, dir string, f func(t *testing.T, a *txtar.Archive)) {
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before := txtar.Format(a)
			f(t, a)
			if after := txtar.Format(a); *update && !bytes.Equal(before, after) {
				if err := os.WriteFile(name, after, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// expect compares got with a section, or rewrites that.
func expect(t *testing.T, section *txtar.File, what, got string) {
	t.Helper()
	if got != "" {
		got += "\n"
	}
	if *update {
		section.Data = []byte(got)
		return
	}
	if diff := cmp.Diff(string(section.Data), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestConfig checks and runs configs. A case has the files of a config, as
// *.alloy, and want: the diagnostics of Check, one a line. The catalog knows
// the components of lab_test.go and test.broken, a script that does not
// compile. Run must refuse exactly the configs with errors other than that,
// and then must not have built anything.
func TestConfig(t *testing.T) {
	cases(t, "config", func(t *testing.T, a *txtar.Archive) {
		bubble(t, func(l *harness) {
			l.catalog.add(component.Registration{Name: "test.broken", Err: errors.New("scripts/test/broken.lua:3: syntax error\n  3 | x = = 1")})
			dir := filepath.Join(l.dir, "config")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			var want *txtar.File
			for i, f := range a.Files {
				if f.Name == "want" {
					want = &a.Files[i]
				} else {
					l.save(filepath.Join("config", f.Name), f.Data)
				}
			}
			_, ds := l.newEngine().Check(dir)
			lines := strings.Join(strings.Split(strings.ReplaceAll(diagnostics(ds), dir+string(filepath.Separator), ""), "\n"), "\n")
			expect(t, want, "diagnostics", lines)

			var refusing int
			for _, d := range ds {
				if d.Severity == config.Error && !strings.HasSuffix(d.Msg, "is broken") {
					refusing++
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- l.e.Run(ctx, dir) }()
			synctest.Wait()
			if refusing == 0 {
				cancel()
				if err := <-done; err != nil {
					t.Errorf("Run refused what Check did not: %v", err)
				}
				return
			}
			got, ok := errors.AsType[config.Diagnostics](<-done)
			if !ok || len(got) != refusing {
				t.Errorf("Run says %d mistakes, Check %d:\n%v", len(got), refusing, got)
			}
			if events := l.takeEvents(); events != "" {
				t.Errorf("a refused config did something: %s", events)
			}
		})
	})
}

func diagnostics(ds config.Diagnostics) string {
	var lines []string
	for _, d := range ds {
		lines = append(lines, d.Error())
	}
	return strings.Join(lines, "\n")
}

// TestReload plays sequences of changes. The sections of a case are done in
// order:
//
//	config    is written and, first, run, later reloaded
//	catalog   changes the catalog, as a save of scripts does, a line each:
//	          "version NAME V", "break NAME MESSAGE", "break NAME@V MESSAGE", "remove NAME",
//	          "accept NAME SIGNALS"
//	file X    is written and the engine told; "remove" removes it
//	first X   is written before the start
//	refused   what the last change was refused with
//	events    what components did since the last events: first what the worker
//	          did, in order, then the rest, sorted
//	said      what was announced since the last said
//	health    of all nodes that are not healthy
//	exports   of the value nodes
func TestReload(t *testing.T) {
	cases(t, "reload", func(t *testing.T, a *txtar.Archive) {
		bubble(t, func(l *harness) {
			var refused error
			for i := range a.Files {
				f := &a.Files[i]
				text := strings.TrimSpace(string(f.Data))
				if refused != nil && f.Name != "refused" {
					t.Errorf("the change before section %d was refused: %v", i, refused)
				}
				name, of, _ := strings.Cut(f.Name, " ")
				switch name {
				case "first":
					l.save(of, f.Data)
				case "file":
					full := l.save(of, f.Data)
					if text == "remove" {
						os.Remove(full)
					}
					refused = l.e.FilesChanged(context.Background(), []string{full})
					synctest.Wait()
				case "config":
					if l.e == nil {
						l.start(string(f.Data))
						refused = nil
					} else {
						refused = l.reload(string(f.Data))
					}
				case "catalog":
					for line := range strings.SplitSeq(text, "\n") {
						l.saved(line)
					}
					refused = l.changed()
				case "refused":
					got := ""
					if refused != nil {
						got = strings.ReplaceAll(refused.Error(), l.dir+string(filepath.Separator), "")
					}
					expect(t, f, "refused with", got)
					refused = nil
				case "events":
					expect(t, f, fmt.Sprintf("events of section %d", i), ordered(l.takeEvents()))
				case "said":
					expect(t, f, fmt.Sprintf("announcements of section %d", i), l.takeLines())
				case "health":
					var lines []string
					for _, i := range l.e.ListComponents() {
						if i.Health.State != component.Healthy {
							lines = append(lines, fmt.Sprintf("%s %s: %s", i.ID, i.Health.State, i.Health.Message))
						}
					}
					expect(t, f, fmt.Sprintf("health in section %d", i), strings.ReplaceAll(strings.Join(lines, "\n"), l.dir+string(filepath.Separator), ""))
				case "nodes":
					var lines []string
					for _, i := range l.e.ListComponents() {
						lines = append(lines, i.ID)
					}
					expect(t, f, fmt.Sprintf("nodes in section %d", i), strings.Join(lines, "\n"))
				case "exports":
					var lines []string
					for _, i := range l.e.ListComponents() {
						if v, ok := i.Exports.(valueExports); ok {
							lines = append(lines, fmt.Sprintf("%s: %s", i.ID, v.Value))
						}
					}
					expect(t, f, "exports", strings.Join(lines, "\n"))
				default:
					t.Fatalf("unknown section %s", f.Name)
				}
			}
		})
	})
}

// save writes a file below the harness's directory and returns its path.
func (l *harness) save(name string, data []byte) string {
	l.t.Helper()
	full := filepath.Join(l.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		l.t.Fatal(err)
	}
	replace(l.t, full, data)
	return full
}

// ordered makes events comparable: components run and end side by side.
func ordered(events string) string {
	var first, rest []string
	for e := range strings.SplitSeq(events, "\n") {
		if strings.HasPrefix(e, "build") || strings.HasPrefix(e, "update") {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	slices.Sort(rest)
	return strings.Trim(strings.Join(append(first, rest...), "\n"), "\n")
}

func (l *harness) saved(line string) {
	l.t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	name, value, _ := strings.Cut(rest, " ")
	r, ok := l.catalog.Lookup(name)
	if !ok || r.Err != nil {
		r = newCatalog(l).regs[name]
		r.Name = name
	}
	switch verb {
	case "version":
		r.Version = value
		l.catalog.add(r)
	case "accept":
		r.Accepts, r.Version = map[string]batchSignals{"metrics": metricsSignal, "logs": logsSignal}[value], "accepts "+value
		l.catalog.add(r)
	case "break":
		name, version, _ := strings.Cut(name, "@")
		l.catalog.add(component.Registration{Name: name, Version: version, Err: errors.New(strings.ReplaceAll(value, `\n`, "\n"))})
	case "remove":
		l.catalog.remove(name)
	default:
		l.t.Fatalf("unknown line %q", line)
	}
}
