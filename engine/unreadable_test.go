//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files/filestest"
)

// TestImportUnreadable imports what must not be read, by itself and among the
// files of a directory.
func TestImportUnreadable(t *testing.T) {
	want := map[string]string{
		"FIFO": "is a FIFO, not a regular file", "socket": "is a socket", "zero": "is a device", "full": "is a device",
		"loop": "too many levels of symbolic links", "dangling": "no such file", "sparse": "is larger than 1 MiB",
	}
	for kind, path := range filestest.Special(t, "x.alloy") {
		if want[kind] == "" {
			continue // a directory is one to read
		}
		for _, filename := range []string{path, filepath.Dir(path)} {
			l := newHarness(t)
			l.write(fmt.Sprintf("import.file \"m\" {\n  filename = %q\n}\n", filename))
			e := l.newEngine()
			filestest.Within(t, "importing a "+kind, func() {
				if _, ds := e.Check(l.config); !strings.Contains(fmt.Sprint(ds.Err()), want[kind]) {
					t.Errorf("%s: got %v, want %q", filename, ds.Err(), want[kind])
				}
			})
		}
	}
}

func TestImportLimits(t *testing.T) {
	f := func(files, size int, ext, want string) {
		t.Helper()
		l := newHarness(t)
		dir := filepath.Join(l.dir, "mods")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d%s", i, ext)), []byte(strings.Repeat(" ", size)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l.write("import.file \"m\" {\n  filename = \"mods\"\n}\n")
		if _, ds := l.newEngine().Check(l.config); !strings.Contains(fmt.Sprint(ds.Err()), want) {
			t.Errorf("got %v, want %q", ds.Err(), want)
		}
	}
	f(1001, 0, ".alloy", "more than 1000 *.alloy files")
	f(17, 1<<20, ".alloy", "larger than 16 MiB together")
	f(20_001, 0, ".txt", "more than 20000 entries")
	f(1000, 0, ".alloy", "")
}

// TestImportHangs: of an import whose file system does not answer, the last good
// content stays, and other changes are made.
func TestImportHangs(t *testing.T) {
	bubble(t, func(l *harness) {
		mods := filepath.Join(l.dir, "mods")
		if err := os.Mkdir(mods, 0o700); err != nil {
			t.Fatal(err)
		}
		l.save("mods/m.alloy", []byte(strings.Replace(passModule, "VALUE", "1", 1)))
		config := "import.file \"m\" {\n  filename = \"mods\"\n}\nm.p \"x\" { }\ntest.source \"a\" {\n  value = %q\n}\n"
		l.start(fmt.Sprintf(config, "1"))
		l.takeEvents()
		_, release := filestest.Hang(t, mods)
		start := time.Now()
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > 10*time.Second {
			t.Errorf("waited for %s", waited)
		}
		l.wantHealth("import.file.m", component.Unhealthy, "has not returned since")
		l.wantHealth("m.p.x", component.Healthy, "")
		l.wantEvents("")
		start = time.Now()
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("waited for %s, though it was known that nothing would come", waited)
		}
		release()
		synctest.Wait()
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		l.wantHealth("import.file.m", component.Healthy, "")
	})
}

// TestHangsOffWorker: while a file system is waited for, the worker does all else.
func TestHangsOffWorker(t *testing.T) {
	bubble(t, func(l *harness) {
		mods := filepath.Join(l.dir, "mods")
		if err := os.Mkdir(mods, 0o700); err != nil {
			t.Fatal(err)
		}
		l.save("mods/m.alloy", []byte(strings.Replace(passModule, "VALUE", "1", 1)))
		l.start("import.file \"m\" {\n  filename = \"mods\"\n}\nm.p \"x\" { }\ntest.uvalue \"v\" { }\ntest.usource \"a\" {\n  value = test.uvalue.v.value\n}\n")
		_, release := filestest.Hang(t, mods)
		done := make(chan error)
		go func() { done <- l.e.FilesChanged(context.Background(), []string{mods}) }()
		synctest.Wait()
		l.fake("test.uvalue.v").exportValue(&arguments{Value: "new"})
		synctest.Wait()
		if a, _ := l.fake("test.usource.a").get(); a.Value != "new" {
			t.Errorf("the worker waits for a file system: the value is %q", a.Value)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.wantHealth("import.file.m", component.Unhealthy, "has not returned since")
		release()
	})
}

// TestNewImportHangs: a new import whose file system does not answer is a mistake at
// once, and delays nothing else.
func TestNewImportHangs(t *testing.T) {
	bubble(t, func(l *harness) {
		mods := filepath.Join(l.dir, "mods")
		if err := os.Mkdir(mods, 0o700); err != nil {
			t.Fatal(err)
		}
		l.save("mods/m.alloy", []byte(strings.Replace(passModule, "VALUE", "1", 1)))
		const config = "test.source \"a\" {\n  value = %q\n}\n"
		const imports = "import.file \"m\" {\n  filename = \"mods\"\n}\nimport.scripts \"s\" {\n  path = \"mods\"\n}\nm.p \"x\" { }\n"
		l.start(fmt.Sprintf(config, "1"))
		asked, release := filestest.Hang(t, mods)
		l.write(imports + fmt.Sprintf(config, "1"))
		first := make(chan error, 1)
		go func() { first <- l.e.Reload(context.Background()) }()
		synctest.Wait()
		start := time.Now()
		if err := l.reload(fmt.Sprintf(config, "2")); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("the reload of another node took %s", waited)
		}
		if err := <-first; err == nil || !strings.Contains(err.Error(), "has not returned since") {
			t.Errorf("got %v", err)
		}
		if len(asked) != 1 {
			t.Errorf("the file system was asked %d times", len(asked))
		}
		l.write(imports + fmt.Sprintf(config, "3"))
		if err := l.e.Reload(context.Background()); err == nil {
			t.Error("the import can be read")
		}
		// When the file system answers, the config on disk is tried again.
		release()
		time.Sleep(time.Second)
		l.wantHealth("m.p.x", component.Healthy, "")
		if a, _ := l.fake("test.source.a").get(); a.Value != "3" {
			t.Errorf("the value is %q", a.Value)
		}
	})
}
