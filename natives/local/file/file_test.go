package file_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/local/file"
)

type watched interface {
	component.Component
	component.Updater
	component.Sourced
}

func arguments(path string) *file.Arguments {
	a := file.Registration().NewArgs().(*file.Arguments)
	a.Filename = path
	return a
}

// build builds and runs the component for a file with the given content.
func build(t *testing.T, content string, edit func(*file.Arguments)) (*componenttest.Node, watched, *file.Arguments) {
	t.Helper()
	a := arguments(filepath.Join(t.TempDir(), "f"))
	write(t, a.Filename, content)
	if edit != nil {
		edit(a)
	}
	n := componenttest.New(t, "local.file.default")
	c := n.Build(t, file.Registration(), a).(watched)
	n.Run(t, c)
	return n, c, a
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantContent(t *testing.T, n *componenttest.Node, secret bool, value string) {
	t.Helper()
	want := file.Exports{Content: component.OptionalSecret{IsSecret: secret, Value: value}}
	if diff := cmp.Diff(any(want), n.Exports()); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}
}

// pass advances the clock and waits until the component is idle. It must be
// called in a synctest bubble.
func pass(n *componenttest.Node, d time.Duration) {
	synctest.Wait()
	n.Clock.Advance(d)
	synctest.Wait()
}

func TestContent(t *testing.T) {
	n, c, a := build(t, "a\x00\xff\n", nil)
	wantContent(t, n, false, "a\x00\xff\n")
	if diff := cmp.Diff([]string{a.Filename}, c.Sourced()); diff != "" {
		t.Errorf("sourced (-want +got):\n%s", diff)
	}
	if got := n.Health().State; got != component.Healthy {
		t.Errorf("got health %v, want healthy", got)
	}
}

func TestSecret(t *testing.T) {
	n, _, _ := build(t, "s", func(a *file.Arguments) { a.IsSecret = true })
	wantContent(t, n, true, "s")
}

func TestMissingAtBuild(t *testing.T) {
	n := componenttest.New(t, "local.file.default")
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := file.Registration().Build(n.Options(), arguments(missing), nil)
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "cannot read file: ") || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v, want one that names the file", err)
	}
}

// TestSourcedChange calls Update with the same arguments, as the engine does when
// the file changes.
func TestSourcedChange(t *testing.T) {
	n, c, a := build(t, "one", nil)

	// An editor's save: another file gets the name.
	tmp := a.Filename + ".tmp"
	write(t, tmp, "two")
	if err := os.Rename(tmp, a.Filename); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(a); err != nil {
		t.Fatal(err)
	}
	wantContent(t, n, false, "two")

	// The file is removed: the last content stays, and the health contains the
	// reason.
	if err := os.Remove(a.Filename); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(a); err != nil {
		t.Errorf("got %v, want the error in the health only", err)
	}
	wantContent(t, n, false, "two")
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, a.Filename) {
		t.Errorf("got health %+v, want unhealthy and the file", h)
	}
	if diff := cmp.Diff([]string{a.Filename}, c.Sourced()); diff != "" {
		t.Errorf("sourced after it vanished (-want +got):\n%s", diff)
	}

	write(t, a.Filename, "three")
	if err := c.Update(a); err != nil {
		t.Fatal(err)
	}
	wantContent(t, n, false, "three")
	if got := n.Health().State; got != component.Healthy {
		t.Errorf("got health %v, want healthy again", got)
	}
}

func TestUpdateToMissing(t *testing.T) { synctest.Test(t, testUpdateToMissing) }

func testUpdateToMissing(t *testing.T) {
	n, c, a := build(t, "one", nil)
	secret := *a
	secret.IsSecret = true
	if err := c.Update(arguments(a.Filename + ".missing")); err == nil {
		t.Error("an update to a missing file went through")
	}
	wantContent(t, n, false, "one")
	if diff := cmp.Diff([]string{a.Filename}, c.Sourced()); diff != "" {
		t.Errorf("sourced (-want +got):\n%s", diff)
	}
	if err := os.Remove(a.Filename); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(&secret); err == nil {
		t.Error("an update that makes what is exported a secret went through without making it one")
	}
	write(t, a.Filename, "two")
	pass(n, a.PollFrequency)
	wantContent(t, n, false, "two")
}

func TestPoll(t *testing.T) { synctest.Test(t, testPoll) }

func testPoll(t *testing.T) {
	n, c, a := build(t, "one", func(a *file.Arguments) {
		a.Detector, a.PollFrequency = file.Poll, 10*time.Second
	})
	if got := c.Sourced(); len(got) != 0 {
		t.Errorf("got sourced %q, want none: the detector is poll", got)
	}
	write(t, a.Filename, "two")
	pass(n, 9*time.Second)
	wantContent(t, n, false, "one")
	pass(n, time.Second)
	wantContent(t, n, false, "two")

	if err := os.Remove(a.Filename); err != nil {
		t.Fatal(err)
	}
	pass(n, 10*time.Second)
	wantContent(t, n, false, "two")
	if got := n.Health().State; got != component.Unhealthy {
		t.Errorf("got health %v, want unhealthy", got)
	}
	write(t, a.Filename, "three")
	pass(n, 10*time.Second)
	wantContent(t, n, false, "three")
	if got := n.Health().State; got != component.Healthy {
		t.Errorf("got health %v, want healthy again", got)
	}
}

func TestPollFrequencyChanges(t *testing.T) { synctest.Test(t, testPollFrequencyChanges) }

func testPollFrequencyChanges(t *testing.T) {
	n, c, a := build(t, "one", nil)
	faster := *a
	faster.PollFrequency = time.Second
	if err := c.Update(&faster); err != nil {
		t.Fatal(err)
	}
	write(t, a.Filename, "two")
	pass(n, time.Second)
	wantContent(t, n, false, "two")
}

func TestArguments(t *testing.T) {
	f := func(edit func(*file.Arguments), want ...string) {
		t.Helper()
		a := arguments("f")
		edit(a)
		err := a.Validate()
		if (err != nil) != (len(want) > 0) {
			t.Errorf("got %v, want %q", err, want)
		}
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("got %v, want it to say %q", err, w)
			}
		}
	}
	f(func(a *file.Arguments) {})
	f(func(a *file.Arguments) { a.Filename = "" }, "filename must not be empty")
	f(func(a *file.Arguments) { a.Filename, a.PollFrequency = "", 0 }, "filename", "poll_frequency is 0s")

	var d file.Detector
	if err := d.UnmarshalText([]byte("inotify")); err == nil || !strings.Contains(err.Error(), `"poll"`) {
		t.Errorf("got %v, want an error that names the detectors", err)
	}
}
