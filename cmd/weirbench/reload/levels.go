package reload

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/process"
)

// level is something that weir holds, and how much more of it is noise.
type level struct {
	name  string
	noise func(before float64) float64
	now   float64
}

// levels returns the lowest values of some seconds: collections of garbage and requests
// come and go.
func (r *run) levels(ctx context.Context) ([]level, error) {
	all := []level{
		{"goroutines", func(float64) float64 { return 10 }, math.Inf(1)},
		{"heap", func(before float64) float64 { return before/5 + 2e6 }, math.Inf(1)},
		{"descriptors", func(float64) float64 { return 10 }, math.Inf(1)},
		{"watches", func(float64) float64 { return 0 }, math.Inf(1)},
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 30 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		families, err := r.weir.Metrics(ctx)
		if err != nil {
			return nil, err
		}
		var now [4]float64
		for i, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes"} {
			if now[i], err = process.Sum(families, name, ""); err != nil {
				return nil, err
			}
		}
		if now[2], now[3], err = r.descriptors(); err != nil {
			return nil, err
		}
		for i := range all {
			all[i].now = min(all[i].now, now[i])
		}
	}
	return all, nil
}

// descriptors returns how many files weir has open, and how many directories it watches.
//
// Format: https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html
func (r *run) descriptors() (open, watches float64, err error) {
	dir := fmt.Sprintf("/proc/%d/fdinfo", r.weir.PID())
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the descriptors of weir, which works on Linux only: %w", err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it was closed
		}
		open++
		watches += float64(strings.Count(string(b), "inotify wd:"))
	}
	return open, watches, nil
}

// checkLevels waits until the levels are the initial ones again, and notes those that are
// not.
func (r *run) checkLevels(ctx context.Context, before []level) error {
	var after []level
	err := r.eventually(ctx, "the levels are the initial ones", func() (err error) {
		if after, err = r.levels(ctx); err != nil {
			return err
		}
		for i, l := range after {
			if !l.within(before[i]) {
				return fmt.Errorf("%s: %v before, %v after", l.name, before[i].now, l.now)
			}
		}
		return nil
	})
	if err != nil && after == nil || ctx.Err() != nil || r.weir.ExitError() != nil {
		return err
	}
	for i, l := range after {
		r.table.promise(fmt.Sprintf("%s after %d saves", l.name, r.o.Saves), fmt.Sprintf("≤ %.0f + %.0f", before[i].now, l.noise(before[i].now)), fmt.Sprintf("%.0f", l.now), l.within(before[i]))
	}
	return nil
}

func (l level) within(before level) bool { return l.now <= before.now+l.noise(before.now) }
