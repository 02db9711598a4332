package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/engine/clock"
)

// kind is a kind of fault. do performs it and describes the result.
type kind struct {
	name string
	do   func(context.Context) (string, error)
}

// Faults of the endpoint.
var (
	dead     = sink.Fault{Reset: true}
	failing  = sink.Fault{Status: 503}
	limiting = sink.Fault{Status: 429, RetryAfter: 1}
	silent   = sink.Fault{HalfClose: true}
	hanging  = sink.Fault{Delay: sink.Duration(time.Hour)} // longer than remote_timeout
	// These accept the samples but do not answer, so weir sends them again.
	deaf      = sink.Fault{Reset: true, Keep: true}
	lying     = sink.Fault{Status: 500, Keep: true}
	forgetful = sink.Fault{HalfClose: true, Keep: true}
)

// kinds returns all kinds of faults.
func (r *run) kinds() []kind {
	endpoint := func(name string, f sink.Fault) kind {
		return kind{"endpoint " + name, func(ctx context.Context) (string, error) { return r.endpoint(ctx, f) }}
	}
	ks := []kind{
		{"kill -9", func(ctx context.Context) (string, error) { return r.killed(ctx, nil) }},
		{"kill -9, endpoint dead", func(ctx context.Context) (string, error) { return r.killed(ctx, &dead) }},
		{"kill -9, endpoint deaf", func(ctx context.Context) (string, error) { return r.killed(ctx, &deaf) }},
		{"kill -9 at rest", r.killedAtRest},
		{"SIGTERM", func(ctx context.Context) (string, error) { return r.stopped(ctx, nil) }},
		{"SIGTERM, endpoint dead", func(ctx context.Context) (string, error) { return r.stopped(ctx, &dead) }},
		{"SIGTERM, endpoint hangs", func(ctx context.Context) (string, error) { return r.stopped(ctx, &hanging) }},
		{"SIGHUP, config, script", r.reloaded},
		{"reload, then kill -9", r.reloadedAndKilled},
		endpoint("answers 503", failing),
		endpoint("answers 429", limiting),
		endpoint("resets", dead),
		endpoint("half-closes", silent),
		endpoint("takes and resets", deaf),
		endpoint("takes and answers 500", lying),
		endpoint("takes and half-closes", forgetful),
		endpoint("hangs", hanging),
		{"endpoint slow", r.slowed},
		{"bits flipped in the journal", r.flipped},
	}
	for _, s := range reloadSteps {
		ks = append(ks, kind{"kill -9 in a reload: " + s.name, func(ctx context.Context) (string, error) { return r.reloadedUntil(ctx, s) }})
	}
	if r.o.Disk {
		ks = append(ks,
			kind{"disk full", func(ctx context.Context) (string, error) { return r.filled(ctx, false) }},
			kind{"disk full, kill -9", func(ctx context.Context) (string, error) { return r.filled(ctx, true) }})
	}
	return ks
}

// setFault sets the fault of the endpoint, or none if f is nil.
func (r *run) setFault(f *sink.Fault) {
	if err := r.sink.SetFault(f); err != nil {
		panic("BUG: " + err.Error())
	}
}

// endpoint sets a fault of the endpoint for some scrapes.
func (r *run) endpoint(ctx context.Context, f sink.Fault) (string, error) {
	before := r.sink.Stats(false)
	r.setFault(&f)
	if err := r.progress(ctx, 2+r.rng.IntN(3)); err != nil {
		return "", err
	}
	waiting, err := r.metric(ctx, "weir_remote_write_samples_pending", "")
	if err != nil {
		return "", err
	}
	r.setFault(nil)
	if err := r.eventually(ctx, "the endpoint takes samples again", func() error {
		if st := r.sink.Stats(false); st.Samples == before.Samples {
			return fmt.Errorf("still %d", st.Samples)
		}
		return nil
	}); err != nil {
		return "", err
	}
	st := r.sink.Stats(false)
	return fmt.Sprintf("%d requests refused, %d samples came again, %.0f waited", st.Refused-before.Refused, st.Duplicates-before.Duplicates, waiting), nil
}

// killed kills weir under load and starts it again. If f is not nil, the endpoint
// has the fault before the kill and until some time after it.
func (r *run) killed(ctx context.Context, f *sink.Fault) (string, error) {
	if f != nil {
		r.setFault(f)
		if err := r.progress(ctx, 1+r.rng.IntN(3)); err != nil {
			return "", err
		}
	}
	if err := r.waitRandom(ctx, r.o.Interval); err != nil {
		return "", err
	}
	r.kill()
	return r.restartAfterKill(ctx, "left", true)
}

// restartAfterKill reads the journal of a dead process, starts the next process
// and removes the fault of the endpoint.
func (r *run) restartAfterKill(ctx context.Context, what string, loaded bool) (string, error) {
	f, err := r.inspectDead(loaded)
	if err != nil {
		return "", err
	}
	if err := r.start(ctx); err != nil {
		return "", err
	}
	if f.blocks > 0 && r.rng.IntN(2) == 0 { // with a backlog of two processes
		if err := r.progress(ctx, 1); err != nil {
			return "", err
		}
	}
	r.setFault(nil)
	return what + " " + f.String(), nil
}

// killedAtRest kills weir when everything that the targets answered must have
// been accepted: no scrape may be missing.
func (r *run) killedAtRest(ctx context.Context) (string, error) {
	r.setFault(&dead)
	if err := r.progress(ctx, 1+r.rng.IntN(3)); err != nil {
		return "", err
	}
	r.freeze(true)
	if err := r.refused(ctx, 2); err != nil {
		return "", err
	}
	r.kill()
	r.freeze(false)
	return r.restartAfterKill(ctx, "left", false)
}

// stopped stops weir and starts it again.
func (r *run) stopped(ctx context.Context, f *sink.Fault) (string, error) {
	if f != nil {
		r.setFault(f)
		if err := r.progress(ctx, 1+r.rng.IntN(3)); err != nil {
			return "", err
		}
	}
	took := r.stop(f != nil)
	return r.restartAfterKill(ctx, fmt.Sprintf("took %.1f s and left", took.Seconds()), true)
}

// reload changes config and script, and sends SIGHUPs at the same time.
func (r *run) reload() error {
	if err := r.weir.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("cannot send SIGHUP: %w", err)
	}
	if err := r.writeConfig(); err != nil {
		return err
	}
	if err := r.weir.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("cannot send SIGHUP: %w", err)
	}
	return r.writeScript()
}

func (r *run) reloaded(ctx context.Context) (string, error) {
	from := len(r.weir.Output())
	n := 1 + r.rng.IntN(3)
	for range n {
		if err := r.reload(); err != nil {
			return "", err
		}
		if err := r.progress(ctx, 1); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d times", n), r.eventually(ctx, "weir says that it has reloaded", func() error {
		out := r.weir.Output()[from:]
		// If a script is saved together with the config, its node is built again
		// with the config.
		if !strings.Contains(out, "1 updated") || !strings.Contains(out, "reloaded faults.same") && !strings.Contains(out, "1 of 3 nodes rebuilt") {
			return fmt.Errorf("it printed %q", out)
		}
		return nil
	})
}

func (r *run) reloadedAndKilled(ctx context.Context) (string, error) {
	if err := r.reload(); err != nil {
		return "", err
	}
	if err := r.waitRandom(ctx, 300*time.Millisecond); err != nil {
		return "", err
	}
	r.kill()
	return r.restartAfterKill(ctx, "left", true)
}

// waitRandom waits for a random time, so that a kill can occur at any moment.
func (r *run) waitRandom(ctx context.Context, within time.Duration) error {
	return clock.Sleep(ctx, clock.System{}, time.Duration(r.rng.Int64N(int64(within))))
}

// flipped damages a backlog of two processes between two kills.
func (r *run) flipped(ctx context.Context) (string, error) {
	if err := r.drained(ctx); err != nil { // so that only the damage is counted
		return "", err
	}
	r.setFault(&dead)
	for n := range 2 {
		if err := r.progress(ctx, 2+r.rng.IntN(2)); err != nil {
			return "", err
		}
		r.kill()
		if _, err := r.inspectDead(true); err != nil {
			return "", err
		}
		if n == 0 {
			if err := r.start(ctx); err != nil {
				return "", err
			}
		}
	}
	d, err := r.flip()
	if err != nil {
		return "", err
	}
	if err := r.start(ctx); err != nil {
		return "", err
	}
	r.setFault(nil)
	if err := r.drained(ctx); err != nil {
		return "", err
	}
	blocks, err := r.metric(ctx, "weir_journal_blocks_dropped_total", "corrupt")
	if err != nil {
		return "", err
	}
	samples, err := r.metric(ctx, "weir_remote_write_samples_dropped_total", "corrupt")
	if err != nil {
		return "", err
	}
	if int(blocks) != d.blocks || int(samples) != d.samples {
		r.addFailure("%d blocks were damaged, with %d samples where the header is good; weir counts %v and %v", d.blocks, d.samples, blocks, samples)
	}
	kept, _ := filepath.Glob(filepath.Join(r.data(), "journal", "*", "*.damaged")) // the pattern is valid
	if len(kept) == 0 {
		r.addFailure("no damaged segment was kept")
	}
	return fmt.Sprintf("%d blocks damaged, %d of them in the header; weir counts %.0f, %d files are kept", d.blocks, d.headers, blocks, len(kept)), nil
}

// filled fills the disk for some scrapes while the endpoint is dead.
func (r *run) filled(ctx context.Context, kill bool) (string, error) {
	r.setFault(&dead)
	const refused = `msg="batch was dropped"`
	from := len(r.weir.Output())
	ballast := filepath.Join(r.data(), "ballast")
	if err := r.eventually(ctx, "weir refuses", func() error {
		if strings.Contains(r.weir.Output()[from:], refused) {
			return nil
		}
		// Fill it again, because weir frees space that it does not need.
		if err := fill(ballast); err != nil {
			return err
		}
		return fmt.Errorf("it printed %q", r.weir.Output()[from:])
	}); err != nil {
		return "", err
	}
	if err := r.progress(ctx, 1); err != nil {
		return "", err
	}
	what := fmt.Sprintf("%d batches were refused", strings.Count(r.weir.Output()[from:], refused))
	if kill {
		r.kill()
		f, err := r.inspectDead(true)
		if err != nil {
			return "", err
		}
		if err := r.start(ctx); err != nil {
			return "", err
		}
		// The disk is still full: the backlog is sent nevertheless, which frees
		// space.
		r.setFault(nil)
		if err := r.eventually(ctx, "the backlog is sent", func() error {
			if n := r.sink.Prove(nil).Owed; n > 0 {
				return fmt.Errorf("%d samples are missing", n)
			}
			return nil
		}); err != nil {
			return "", err
		}
		what += "; left " + f.String() + "; the rest came while it was full"
	}
	if err := os.Remove(ballast); err != nil {
		return "", err
	}
	r.setFault(nil)
	return what, nil
}

// fill appends to a file until the disk is full.
func fill(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	const most = 1 << 30 // the disk is small
	for b := make([]byte, 64<<10); ; {
		n, err := f.Write(b)
		if err == nil && n == len(b) {
			if fi, err := f.Stat(); err == nil && fi.Size() > most {
				return fmt.Errorf("cannot fill the disk of %s: it has more than %d bytes", path, most)
			}
			continue
		}
		if len(b) == 1 {
			return nil
		}
		b = b[:max(1, len(b)/2)]
	}
}
