package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// TestPreviewReload: a preview has the nodes that a reload would change, and why, and
// changes nothing.
func TestPreviewReload(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", nil))
		l.start(`test.sink "a" { }
test.uvalue "u" { value = "1" }
test.value "v" { number = 1 }
test.value "same" { value = test.uvalue.u.value }
test.value "gone" { }
test.source "s" { forward_to = [test.sink.a.receiver] }`)
		l.takeEvents()
		v.save(v.version("2", errTrial))
		l.write(`test.sink "a" { }
test.uvalue "u" {
  value  = "2"
  number = 2
}
test.value "v" { number = 2 }
test.value "same" { value = test.uvalue.u.value }
test.value "new" { }
test.source "s" { forward_to = [test.sink.a.receiver] }`)
		got, err := l.e.PreviewReload(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		want := service.Preview{Nodes: []service.PreviewNode{
			{ID: "test.sink.a", Action: "rebuilt", From: "1", To: "2", Why: "version 1 → 2"},
			{ID: "test.uvalue.u", Action: "updated", Why: "arguments changed: value, number"},
			{ID: "test.value.v", Action: "rebuilt", Why: "arguments changed: number"},
			{ID: "test.value.same", Action: "unknown", Why: "it follows the exports of test.uvalue.u"},
			{ID: "test.value.new", Action: "added", Why: "its block is new: " + l.config + ":8"},
			{ID: "test.value.gone", Action: "removed", Why: "its block is gone: " + l.config + ":5"},
		}, Untouched: 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the preview (-want +got):\n%s", diff)
		}
		l.wantEvents("")
		v.wantRuns(t, "1")
		if n := len(l.e.Reloads()); n != 1 {
			t.Errorf("there are %d records, want that of the start", n)
		}
		l.write(`test.nothing "a" { }`)
		if _, err := l.e.PreviewReload(context.Background(), "", ""); err == nil {
			t.Error("a config with a mistake was previewed")
		}
	})
}

// text is a difference between versions.
type text string

func (s text) String() string { return string(s) }

// TestPreviewCompares: a preview has the difference between the running and a new
// version, and says which versions would be refused for it or have been refused. It is
// complete when new versions are compiled, and it ends in time.
func TestPreviewCompares(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", nil))
		l.start(`test.sink "a" { }`)
		running, _ := l.e.GetComponent("test.sink.a")
		preview := func() service.PreviewNode {
			t.Helper()
			p, err := l.e.PreviewReload(context.Background(), "", "")
			if err != nil || len(p.Nodes) != 1 {
				t.Fatalf("got %+v, %v", p, err)
			}
			return p.Nodes[0]
		}
		want := func(action, why string, shadow any) {
			t.Helper()
			if diff := cmp.Diff(service.PreviewNode{ID: "test.sink.a", Action: action, From: "1", To: "2", Why: why, Shadow: shadow}, preview()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		second := v.version("2", errTrial)
		var fails error
		second.Compare = func(ctx context.Context, c component.Trial) (fmt.Stringer, *component.Rejection) {
			if c.Node != "test.sink.a" || c.Running != running {
				t.Errorf("compared with %+v", c)
			}
			if fails == context.DeadlineExceeded {
				<-ctx.Done()
				return text(context.Cause(ctx).Error()), nil
			}
			if fails != nil {
				return text("differs"), &component.Rejection{Step: component.StepShadow, Err: fails}
			}
			return text("differs"), nil
		}
		v.save(second)
		want("rebuilt", "version 1 → 2", text("differs"))
		fails = errors.New("it drops all")
		want("refused", "running version 1; 2 refused by shadow: it drops all", text("differs"))
		fails = context.DeadlineExceeded
		want("rebuilt", "version 1 → 2", text("the preview took longer than 30s"))

		compiled := make(chan struct{})
		v.save(component.Registration{Name: "test.sink", Err: &component.PendingError{Err: errTrial, What: "the compilation", Done: compiled}})
		fails = nil
		time.AfterFunc(time.Second, func() {
			v.save(second)
			close(compiled)
		})
		want("rebuilt", "version 1 → 2", text("differs"))

		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		want("refused", `running version 1; 2 refused by test: a_test:2: test "marks" failed`, text("differs"))
		v.wantRuns(t, "1")
	})
}

// TestPreviewForgetsFolders: a preview of another config does not keep the folders of
// scripts that only this config imports.
func TestPreviewForgetsFolders(t *testing.T) {
	bubble(t, func(l *harness) {
		made := 0
		l.onFolder = func(c *catalog) component.Catalog { made++; return c }
		l.start(``)
		other := filepath.Join(l.dir, "other.alloy")
		replace(t, other, []byte("import.scripts \"acme\" { path = \".\" }"))
		for range 2 {
			if _, err := l.e.PreviewReload(context.Background(), other, ""); err != nil {
				t.Fatal(err)
			}
		}
		if made != 2 {
			t.Errorf("the folder was opened %d times in 2 previews", made)
		}
	})
}

// TestPreviewOfOtherScripts: a preview with another folder of scripts resolves block names
// there. Natives stay, and the graph keeps its scripts.
func TestPreviewOfOtherScripts(t *testing.T) {
	bubble(t, func(l *harness) {
		folder := func(version string) string {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "a"), 0o755); err != nil {
				t.Fatal(err)
			}
			replace(t, filepath.Join(dir, "a", "b.lua"), []byte(version))
			return dir
		}
		running, err := l.folder("", folder("1"))
		if err != nil {
			t.Fatal(err)
		}
		l.options.Catalogs = []component.Catalog{extensible{running}}
		l.start("a.b \"x\" { }\ntest.sink \"a\" { }")
		l.takeEvents()
		for range 2 {
			got, err := l.e.PreviewReload(context.Background(), "", folder("2"))
			want := service.Preview{Nodes: []service.PreviewNode{{ID: "a.b.x", Action: "rebuilt", From: "1", To: "2"}}, Untouched: 1}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(service.PreviewNode{}, "Why")); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		}
		if got, err := l.e.PreviewReload(context.Background(), "", ""); err != nil || len(got.Nodes) > 0 {
			t.Errorf("without another folder: got %+v, %v", got, err)
		}
		if _, err := l.e.PreviewReload(context.Background(), "", filepath.Join(l.dir, "missing")); err == nil || !strings.HasPrefix(err.Error(), "cannot read scripts: ") {
			t.Errorf("got %v for a folder that does not exist", err)
		}
		l.wantEvents("")
	})
}

// extensible is a catalog of the user's scripts.
type extensible struct{ component.Catalog }

func (extensible) NewFile(string) string { return "" }

// TestPreviewOfTrial: a preview names the step of a version that is being tried.
func TestPreviewOfTrial(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", nil))
		l.start(`test.sink "a" { }`)
		second, ended := v.version("2", nil), make(chan struct{})
		second.Trial = func(_ context.Context, c component.Trial) *component.Rejection {
			c.Begin(component.StepCanary)
			<-ended
			return nil
		}
		v.save(second)
		if err := l.changed(); err != nil {
			t.Fatal(err)
		}
		got, err := l.e.PreviewReload(context.Background(), "", "")
		want := service.Preview{Nodes: []service.PreviewNode{{ID: "test.sink.a", Action: "in progress", From: "1", To: "2", Why: "version 1 → 2 is being tried (step canary)"}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
		close(ended)
		synctest.Wait()
		if got, err := l.e.PreviewReload(context.Background(), "", ""); err != nil || got.Untouched != 1 {
			t.Errorf("after the trial: got %+v, %v", got, err)
		}
	})
}
