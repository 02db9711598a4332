package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// keeping is a bubble whose engines keep the last good config.
func keeping(t *testing.T, f func(l *harness)) {
	t.Helper()
	bubble(t, func(l *harness) {
		l.options.LastGood = true
		f(l)
	})
}

// again starts an engine with the files that are there, after the last one has ended. It
// returns the error of Run if that has returned.
func (l *harness) again() error {
	l.t.Helper()
	if l.stop != nil {
		l.end()
	}
	l.takeEvents()
	l.takeLines()
	l.registry, l.done = prometheus.NewRegistry(), make(chan struct{})
	l.newEngine()
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go func(done chan struct{}) {
		defer close(done)
		l.err = l.e.Run(ctx, l.config)
	}(l.done)
	synctest.Wait()
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// remove removes the config.
func (l *harness) remove() {
	l.t.Helper()
	if err := os.RemoveAll(l.config); err != nil {
		l.t.Fatal(err)
	}
}

const goodConfig = "test.pass \"a\" {\n  forward_to = [test.sink.b.receiver]\n}\ntest.sink \"b\" { }\n"

// TestLastGoodConfig starts with configs that are refused.
func TestLastGoodConfig(t *testing.T) {
	f := func(name, broken, want string) {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(l *harness) {
				l.start(goodConfig)
				l.end()
				l.remove()
				if broken != "(missing)" {
					l.write(broken)
				}
				for range 2 { // the second start must not change what is kept
					time.Sleep(time.Hour) // of the bubble
					if err := l.again(); err != nil {
						t.Fatal(err)
					}
				}
				l.onSaid = func(string) {
					if got := l.e.Overview().ConfigError; !strings.Contains(got, want) {
						t.Errorf("the error of the config is %q when the start is announced, want %q", got, want)
					}
					l.onSaid = nil
				}
				if err := l.again(); err != nil {
					t.Fatal(err)
				}
				l.wantNodes("test.pass.a test.sink.b")
				l.takeEvents()
				lines := l.takeLines()
				for _, part := range []string{"cannot run c.alloy: c.alloy", want, "; running the last good config, accepted on 2000-01-01 00:00:00 UTC", "\nstarted the last good version of c.alloy (… ms), 2 nodes"} {
					if !strings.Contains(lines, part) {
						t.Errorf("announced:\n%s\nwant %q", lines, part)
					}
				}
				if got := l.e.Overview().ConfigError; !strings.Contains(got, want) {
					t.Errorf("the error of the config is %q, want %q", got, want)
				}
				if got := l.e.Overview(); !got.Ready || !strings.Contains(got.Reload.Message, "the config file was refused and is not what runs") {
					t.Errorf("got %+v", got)
				}
				records := l.e.Reloads()
				if len(records) != 2 || records[0].Outcome != "refused" || records[0].Trigger.Kind != "start" || !strings.Contains(records[0].Message, want) || records[1].Outcome != "applied" {
					t.Errorf("got records %+v", records)
				}
				l.wantCurrent(0)

				// It stays refused until it is repaired.
				if err := l.e.Reload(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("a reload returns %v, want %q", err, want)
				}
				l.wantEvents("")
				l.takeLines()
				if err := l.reload(strings.ReplaceAll(goodConfig, "\"a\"", "\"c\"")); err != nil {
					t.Fatal(err)
				}
				if got, want := ordered(l.takeEvents()), "build test.pass.c\nrun test.pass.c\nstop test.pass.a"; got != want {
					t.Errorf("got events:\n%s\nwant:\n%s", got, want)
				}
				l.wantSaid("reloaded c.alloy (… ms), 1 of 2 nodes rebuilt, 1 removed")
				l.wantCurrent(1)
				if got := l.e.Overview().ConfigError; got != "" {
					t.Errorf("the repaired config has the error %q", got)
				}

				// The repaired config is the last good one now.
				l.write("test.nothing \"a\" { }\n")
				if err := l.again(); err != nil {
					t.Fatal(err)
				}
				l.wantNodes("test.pass.c test.sink.b")
			})
		})
	}
	f("syntax", "test.sink \"b\" }\n", "expected block body, got }")
	f("half-written", goodConfig[:len(goodConfig)-3], "block test.sink.b is not closed")
	f("empty", "", "the config contains no blocks")
	f("comments only", "// begin\n", "the config contains no blocks")
	f("not text", goodConfig+"\xff", "the file is not UTF-8 text")
	f("unknown component", "test.nothing \"a\" { }\n", "component test.nothing does not exist")
	f("unknown attribute", "test.sink \"b\" {\n  wrong = 1\n}\n", "unknown attribute wrong")
	f("invalid argument", "test.sink \"b\" {\n  value = \"invalid\"\n}\n", "value must not be \"invalid\"")
	f("missing reference", "test.pass \"a\" {\n  forward_to = [test.sink.b.receiver]\n}\n", "test.sink.b")
	f("missing", "(missing)", "no such file or directory")
}

// wantNodes checks which nodes run.
func (l *harness) wantNodes(want string) {
	l.t.Helper()
	var ids []string
	for _, i := range l.e.ListComponents() {
		if i.Health.State == component.Healthy {
			ids = append(ids, i.ID)
		}
	}
	if got := strings.Join(ids, " "); got != want {
		l.t.Errorf("the nodes %s run, want %s", got, want)
	}
}

func (l *harness) wantCurrent(want float64) {
	l.t.Helper()
	if err := testutil.GatherAndCompare(l.registry, strings.NewReader("# HELP weir_engine_config_current 1 when the config that runs is the one that was read last, 0 when that was refused.\n# TYPE weir_engine_config_current gauge\nweir_engine_config_current "+string('0'+rune(want))+"\n"), "weir_engine_config_current"); err != nil {
		l.t.Error(err)
	}
}

// TestLastGoodFolder starts with a folder that has a broken file, and without the folder.
func TestLastGoodFolder(t *testing.T) {
	keeping(t, func(l *harness) {
		l.config = filepath.Join(l.dir, "configs")
		if err := os.Mkdir(l.config, 0o700); err != nil {
			t.Fatal(err)
		}
		save := func(name, text string) { replace(t, filepath.Join(l.config, name), []byte(text)) }
		save("m", "declare \"d\" {\n  test.value \"v\" {\n    value = module_path\n  }\n}\n")
		save("a.alloy", "test.pass \"a\" {\n  forward_to = [test.sink.b.receiver]\n}\nimport.file \"m\" {\n  filename = \"m\"\n}\nm.d \"x\" { }\n")
		save("b.alloy", "test.sink \"b\" { }\n")
		for _, broken := range []string{"", "test.sink \"b\" {\n", "gone"} {
			switch broken {
			case "gone":
				l.remove()
			case "":
			default:
				save("b.alloy", broken)
			}
			if err := l.again(); err != nil {
				t.Fatal(err)
			}
			if got := l.info("m.d.x/test.value.v").Exports.(valueExports).Value; got != l.config {
				t.Errorf("module_path is %q, want %q", got, l.config)
			}
			l.info("test.pass.a")
			l.info("test.sink.b")
			if got, want := l.info("test.sink.b").Position, filepath.Join(l.config, "b.alloy")+":1"; got != want {
				t.Errorf("test.sink.b is at %s, want %s", got, want)
			}
			if refused := l.e.Overview().ConfigError != ""; refused != (broken != "") {
				t.Errorf("with %q: the error of the config is %q", broken, l.e.Overview().ConfigError)
			}
		}
	})
}

// TestLastGoodModules starts with a broken module, which is kept with the config.
func TestLastGoodModules(t *testing.T) {
	keeping(t, func(l *harness) {
		module := func(value string) string { return strings.Replace(passModule, "VALUE", value, 1) }
		file := filepath.Join(l.dir, "m.alloy")
		replace(t, file, []byte(module("1")))
		l.start("import.file \"m\" {\n  filename = \"m.alloy\"\n}\nm.p \"x\" { }\n")
		value := func() string { return l.info("m.p.x/test.upass.x").Arguments.(*arguments).Value }
		change := func(text string) {
			t.Helper()
			replace(t, file, []byte(text))
			_ = l.e.FilesChanged(context.Background(), []string{file})
			synctest.Wait()
		}
		change(module("2")) // without a change of the config
		replace(t, file, []byte("declare \"p\" {"))
		if err := l.again(); err != nil {
			t.Fatal(err)
		}
		if got := value(); got != "2" {
			t.Errorf("the module has the value %s, want 2", got)
		}
		if got := l.e.Overview().ConfigError; !strings.Contains(got, "m.alloy:1:1: error: block declare.p is not closed") {
			t.Errorf("the error of the config is %q", got)
		}
		change(module("3"))
		if got := value(); got != "3" || l.e.Overview().ConfigError != "" {
			t.Errorf("the module has the value %s, want 3; the error of the config is %q", got, l.e.Overview().ConfigError)
		}
		// While the config is refused, a module that is saved is used and kept.
		if err := l.reload("import.file \"m\" {\n"); err == nil {
			t.Fatal("a broken config was accepted")
		}
		change(module("4"))
		replace(t, file, []byte("declare \"p\" {"))
		if err := l.again(); err != nil {
			t.Fatal(err)
		}
		if got := value(); got != "4" {
			t.Errorf("the module has the value %s, want 4", got)
		}
	})
}

// TestLastGoodMissing refuses to start where there is nothing to run instead.
func TestLastGoodMissing(t *testing.T) {
	f := func(name, want string, change func(l *harness, copied string)) {
		t.Run(name, func(t *testing.T) {
			keeping(t, func(l *harness) {
				var log bytes.Buffer
				l.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
				l.start(goodConfig)
				l.end()
				log.Reset()
				l.write("test.sink \"broken\" {\n")
				change(l, filepath.Join(l.dir, "last-good-config"))
				err := l.again()
				if ds, ok := errors.AsType[config.Diagnostics](err); !ok || !strings.Contains(ds.Error(), "block test.sink.broken is not closed") {
					t.Errorf("the start returns %v", err)
				}
				l.wantEvents("")
				if got := log.String(); !strings.Contains(got, want) || want == "" && strings.Contains(got, "WARN") {
					t.Errorf("the log has %q, want %q", got, want)
				}
			})
		})
	}
	patch := func(at int, b byte) func(*harness, string) {
		return func(l *harness, copied string) {
			text, err := os.ReadFile(copied)
			if err != nil {
				l.t.Fatal(err)
			}
			if at < 0 {
				at += len(text)
			}
			text[at] = b
			replace(l.t, copied, text)
		}
	}
	f("off", "", func(l *harness, _ string) { l.options.LastGood = false })
	f("no copy", "", func(l *harness, copied string) { os.Remove(copied) })
	f("another config", "", func(l *harness, _ string) {
		other := filepath.Join(l.dir, "other.alloy")
		if err := os.Rename(l.config, other); err != nil {
			l.t.Fatal(err)
		}
		l.config = other
	})
	f("damaged", "last-good-config: it is damaged: its checksum is wrong", patch(-5, 'x'))
	f("another file", "last-good-config: it is damaged", patch(0, 'x'))
	f("another format", "was written by another version of weir: its format is 9, not 1", patch(8, 9))
	f("truncated", "last-good-config: it is damaged", func(l *harness, copied string) {
		if err := os.Truncate(copied, 100); err != nil {
			l.t.Fatal(err)
		}
	})
	f("truncated header", "last-good-config: it is damaged", func(l *harness, copied string) {
		if err := os.Truncate(copied, 20); err != nil {
			l.t.Fatal(err)
		}
	})
	f("empty", "last-good-config: it is damaged", func(l *harness, copied string) {
		if err := os.Truncate(copied, 0); err != nil {
			l.t.Fatal(err)
		}
	})
	f("does not fit this weir", "cannot run the last good config", func(l *harness, _ string) { l.catalog.remove("test.pass") })
}

// TestLastGoodBlank starts with a blank config, which is valid if there is no other.
func TestLastGoodBlank(t *testing.T) {
	keeping(t, func(l *harness) {
		l.start("\n")
		if got := l.e.Overview(); !got.Ready || got.ConfigError != "" {
			t.Errorf("got %+v", got)
		}
		if err := l.again(); err != nil || l.e.Overview().ConfigError != "" {
			t.Errorf("a blank config, which is also the last good one, is refused: %v, %s", err, l.e.Overview().ConfigError)
		}
		if err := l.reload(goodConfig); err != nil {
			t.Fatal(err)
		}
		l.write("test.sink {")
		if err := l.again(); err != nil {
			t.Fatal(err)
		}
		if err := l.reload(""); err == nil {
			t.Error("a blank config replaces the last good one, which runs instead of a broken one")
		}
		if err := l.reload(goodConfig); err != nil {
			t.Fatal(err)
		}
		if err := l.reload(""); err != nil {
			t.Errorf("a blank config is refused after the broken one was repaired: %v", err)
		}
	})
}

// TestLastGoodUnwritable runs on a disk on which the config cannot be kept.
func TestLastGoodUnwritable(t *testing.T) {
	keeping(t, func(l *harness) {
		var log bytes.Buffer
		l.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		copied := filepath.Join(l.dir, "last-good-config")
		if err := os.MkdirAll(filepath.Join(copied, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		l.start(goodConfig)
		if !l.e.Ready() {
			t.Error("weir does not run")
		}
		time.Sleep(10 * time.Minute) // of the bubble
		synctest.Wait()
		if got := strings.Count(log.String(), "cannot keep the config: a start with a broken config cannot fall back on it"); got != 1 {
			t.Errorf("the log has the warning %d times, want once:\n%s", got, log.String())
		}
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, err := os.Stat(copied); errors.Is(err, fs.ErrNotExist) {
			t.Error("the config is not kept when there is space again")
		}
	})
}

// TestLastGoodSecrets: the copy is for weir's user, and nothing else has its text.
func TestLastGoodSecrets(t *testing.T) {
	keeping(t, func(l *harness) {
		l.start(goodConfig)
		fi, err := os.Stat(filepath.Join(l.dir, "last-good-config"))
		if err != nil {
			t.Fatal(err)
		}
		if got := fi.Mode().Perm(); got != 0o600 {
			t.Errorf("the copy has mode %o, want 600", got)
		}
	})
}

// TestLastGoodScripts starts without a folder of import.scripts: the last good version of
// its scripts run.
func TestLastGoodScripts(t *testing.T) {
	keeping(t, func(l *harness) {
		l.save("s/http/paths.lua", []byte("1"))
		var gone map[string]component.Registration
		l.onFolder = func(c *catalog) component.Catalog {
			c.gone = gone
			if r, ok := c.regs["new.http.paths"]; ok {
				gone = map[string]component.Registration{r.Name: {
					Name: r.Name, Err: errors.New("it is gone"), Instead: func(string) *component.Registration { return &r },
				}}
			}
			return c
		}
		l.start("import.scripts \"new\" {\n  path = \"s\"\n}\nnew.http.paths \"x\" { }\n")
		if err := os.RemoveAll(filepath.Join(l.dir, "s")); err != nil {
			t.Fatal(err)
		}
		if err := l.again(); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("new.http.paths.x", component.Unhealthy, "running version 1; it is gone")
		if got := l.e.Overview().ConfigError; !strings.Contains(got, "there is no folder") {
			t.Errorf("the error of the config is %q", got)
		}
		l.save("s/http/paths.lua", []byte("2"))
		if err := l.e.Reload(context.Background()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.wantHealth("new.http.paths.x", component.Healthy, "")
		if got := l.e.Overview().ConfigError; got != "" {
			t.Errorf("the error of the config is %q", got)
		}
	})
}
