package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/watch"
	"github.com/weir-run/weir/scripting/scripttest"
)

// rerun stores the results of the last runs of `weir test --watch`.
type rerun struct {
	o     *testOptions
	t     *terminal
	files map[string]scripttest.File // the last result of each file, by name
}

// watch runs all tests, and after each change the tests that it affects, until
// ctx ends.
func (o *testOptions) watch(ctx context.Context, t *terminal) error {
	dirs, err := scripttest.Folders(o.Options)
	if err != nil {
		return cannotStart(err)
	}
	r := &rerun{o: o, t: t, files: map[string]scripttest.File{}}
	w := watch.New(watch.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), OnChange: r.changed})
	if err := w.Set(dirs); err != nil { // before the files are read
		return cannotStart(err)
	}
	r.run(ctx, nil)
	t.printStatus("watching", strings.Join(dirs, ", ")+"; ctrl-C ends")
	return w.Run(ctx)
}

// changed runs the tests that depend on one of the paths, the tests that failed
// in the last run, and new tests.
func (r *rerun) changed(ctx context.Context, paths []string, _ time.Time) {
	// Tests write snapshots themselves: a run because of them could go on for ever.
	paths = slices.DeleteFunc(slices.Clone(paths), scripttest.IsSnapshots)
	if len(paths) == 0 {
		return
	}
	concerned := func(name string) bool {
		f, known := r.files[name]
		return !known || f.Failing() || slices.ContainsFunc(f.Sources, func(s string) bool { return slices.Contains(paths, s) })
	}
	for i, p := range paths {
		if i == 3 && len(paths) > 4 {
			r.t.printStatus("changed", fmt.Sprintf("… and %d more", len(paths)-i))
			break
		}
		r.t.printStatus("changed", p)
	}
	skip := func(name string) bool { return !concerned(name) }
	if r.o.Coverage {
		skip = nil // otherwise, tests that are skipped would count as not covering their code
	}
	r.run(ctx, skip)
}

// run runs tests and prints errors. Errors do not end the watching.
func (r *rerun) run(ctx context.Context, skip func(string) bool) {
	run := r.o.Options
	run.Skip = skip
	report, err := r.o.once(ctx, r.t, run)
	if ctx.Err() != nil {
		return
	}
	if err == nil && report.Coverage != nil {
		_, err = r.o.reportCoverage(r.t, report.Coverage)
	}
	if err != nil {
		r.t.errorf("%v", err)
	}
	if report == nil || errors.Is(err, scripttest.ErrNoTests) {
		return
	}
	if len(report.Files) == 0 {
		r.t.printStatus("nothing", "no test depends on it")
	}
	for _, f := range report.Files {
		r.files[f.Name] = f
	}
}
