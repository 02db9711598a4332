package faults

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/versions"
)

// TestNamed reads from a history which version must run after a restart.
func TestNamed(t *testing.T) {
	const before, saved = 1, 2
	began := time.Now()
	f := func(name string, s step, since time.Time, write func(store *versions.Store, dir string) error, want int, why string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r := &run{o: Options{Dir: t.TempDir()}, saved: saved}
			store, dir := versions.Open(r.data(), versions.DefaultLimits, slog.New(slog.DiscardHandler)), filepath.Join(r.o.Dir, "scripts")
			if err := activate(store, dir, before, began.Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			if write != nil {
				if err := write(store, dir); err != nil {
					t.Fatal(err)
				}
			}
			got, reason, err := r.named(s, before, since)
			if got != want || reason != why || err != nil {
				t.Errorf("got version %d, %s, %v; want version %d, %s", got, reason, err, want, why)
			}
		})
	}
	refuse := func(store *versions.Store, dir string) error {
		return store.Refuse("faults.same", dir, versions.Refusal{ID: "2", Time: time.Now(), Step: component.StepShadow, Node: node})
	}
	f("nothing was decided", step{}, began, nil, saved, "undecided")
	f("it fails its tests", step{fails: true}, began, nil, before, "to be refused")
	f("it was in a canary", step{canary: true}, began, nil, before, "undecided")
	f("it became active", step{canary: true}, began, func(store *versions.Store, dir string) error {
		return activate(store, dir, saved, began.Add(time.Second))
	}, saved, "active")
	f("it was refused", step{}, began, refuse, before, "refused")
	f("another one was refused earlier", step{}, began.Add(time.Hour), refuse, saved, "undecided")
	f("the previous one is pinned", step{}, began, func(store *versions.Store, dir string) error {
		if err := activate(store, dir, saved, began.Add(time.Second)); err != nil {
			return err
		}
		return store.Pin("faults.same", dir, versions.Pin{Node: node, ID: "1", Time: began})
	}, before, "pinned")
}

// activate records that version n became active.
func activate(store *versions.Store, dir string, n int, at time.Time) error {
	file := versions.File{Path: "faults/same.lua", Text: fmt.Sprintf("-- faults version %d", n)}
	_, err := store.Activate("faults.same", dir, versions.Version{ID: fmt.Sprint(n)}, []versions.File{file}, node, at)
	return err
}
