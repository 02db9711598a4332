// Package faults runs a weir under load and does to it what the world does:
// kills it, stops it, reloads it, breaks its endpoint, fills its disk and flips
// bits in its journal, in an order that a seed decides. At the end it says
// whether anything was lost.
//
// What must arrive is defined without asking weir. Every sample of the targets
// is a number in a sequence (see package target). A number may be missing for
// one of four reasons, each of them known by instance: the scrape was the last
// one that a process asked for before it died; weir logged that its batch was
// refused until the next one was due, by a full disk; it failed, as up says;
// or its block was damaged on purpose, and then weir must have counted exactly
// the blocks that were. And whatever lay in the journal when a process died
// must arrive. Everything else that is missing is lost. What comes twice must
// be the same series with the same timestamp and value, in whichever request;
// nothing may come late, and of a scrape all samples
// come or none.
//
// After a kill in the middle of a reload, the version of the script that is on disk must
// run, or the last one that passed its tests if the one on disk fails them.
package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/process"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// Options are what a run needs.
type Options struct {
	Weir     string // the program
	Dir      string // for config, journal and log
	Targets  int
	Series   int // of each target
	Interval time.Duration
	Steps    int    // faults; every kind comes before one comes again
	Only     string // those whose name has this in it
	Seed     uint64 // decides the order, and what is left to chance in each
	// Disk says that Dir/data is a small file system of its own, which can be
	// filled.
	Disk bool
	// StopWithin is how long a stop may take while the endpoint is dead.
	StopWithin time.Duration
	MinDrain   float64       // the least part of what a slow endpoint can take at which a backlog drains
	Patience   time.Duration // bounds every wait: the machine may be slow, a hang may not pass
	Out        io.Writer     // what happens, line by line
}

// ErrLost is what Run returns, wrapped, when something was lost or not as it
// must be; what, was written.
var ErrLost = errors.New("not everything is as it must be")

// run is a run in the making.
type run struct {
	o       Options
	rng     *rand.Rand
	began   time.Time
	sink    *sink.Server
	targets *target.Server
	weir    *process.Process // the one that runs now
	variant int              // of the config
	queue   string           // what queue_config has, "" for that of the variant

	deaths   []map[string]int // by instance: the last scrape that a process had been answered when it died
	rest     []span           // times at which the targets were frozen
	output   []string         // of processes that are gone
	drains   []string         // of the slow endpoint
	problems []string
	damaged  int // blocks
	repeated int // blocks that had arrived and were in the journal when a process died
}

// span is a time from when to when, Unix ms.
type span struct{ from, to int64 }

// Run makes one run.
func Run(ctx context.Context, o Options) (err error) {
	r := &run{o: o, rng: newRand(o.Seed), began: time.Now()}
	if r.targets, err = target.Listen(target.Options{
		Targets: o.Targets, Series: o.Series, Sequences: o.Series, Format: target.Text, Gzip: target.GzipOff,
	}); err != nil {
		return err
	}
	if r.sink, err = sink.Listen("127.0.0.1:0"); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	errs := make([]error, 2)
	wg.Go(func() { errs[0] = r.targets.Serve(serving) })
	wg.Go(func() { errs[1] = r.sink.Serve(serving) })
	defer func() {
		r.kill()
		stop()
		wg.Wait()
		err = errors.Join(err, errors.Join(errs...))
	}()
	fmt.Fprintf(o.Out, "seed %d: %d faults, while %d targets × %d series are scraped every %s\n", o.Seed, o.Steps, o.Targets, o.Series, o.Interval)
	if err := r.writeConfig(); err != nil {
		return err
	}
	if err := r.writeScript(); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.progress(ctx, 2); err != nil {
		return err
	}
	if err := r.faults(ctx); err != nil {
		return err
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	return r.checkAll()
}

// faults does what is to be done, in the seed's order.
func (r *run) faults(ctx context.Context) error {
	var names []string
	all := slices.DeleteFunc(r.kinds(), func(k kind) bool {
		names = append(names, k.name)
		return !strings.Contains(k.name, r.o.Only)
	})
	if len(all) == 0 {
		return fmt.Errorf("cannot do anything: no fault has %q in its name; there are: %s", r.o.Only, strings.Join(names, "; "))
	}
	var order []kind
	for len(order) < r.o.Steps {
		r.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		order = append(order, all...)
	}
	for i, k := range order[:r.o.Steps] {
		at := time.Since(r.began)
		what, err := k.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w; the last output of weir:\n%s", k.name, err, r.weir.OutputTail())
		}
		r.printf("%3d %6.1fs  %-30s %s", i+1, at.Seconds(), k.name, what)
		if err := r.progress(ctx, 1+r.rng.IntN(2)); err != nil {
			return fmt.Errorf("after %s: %w; the last output of weir:\n%s", k.name, err, r.weir.OutputTail())
		}
	}
	return nil
}

func (r *run) printf(format string, args ...any) { fmt.Fprintf(r.o.Out, format+"\n", args...) }

// addFailure notes what must not be.
func (r *run) addFailure(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// finish lets everything arrive and stops weir.
func (r *run) finish(ctx context.Context) error {
	r.freeze(true)
	if err := r.refused(ctx, 2); err != nil { // so the batches before were taken, or dropped
		return err
	}
	if err := r.drained(ctx); err != nil {
		if ctx.Err() != nil || r.weir.ExitError() != nil {
			return err
		}
		r.addFailure("%v", err) // and then something is lost, most likely
	}
	r.stop(false)
	return nil
}

// eventually polls until f returns nil, and says what it said last if it does
// not.
func (r *run) eventually(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		if r.weir != nil {
			if gone := r.weir.ExitError(); gone != nil {
				return gone
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, err)
		}
	}
}

// progress waits until every target was scraped n more times.
func (r *run) progress(ctx context.Context, n int) error {
	return r.each(ctx, fmt.Sprintf("every target is scraped %d times", n), n, func(st target.Stats) map[string]int { return st.Scrapes })
}

// refused waits until every target was asked n more times while frozen.
func (r *run) refused(ctx context.Context, n int) error {
	return r.each(ctx, fmt.Sprintf("every frozen target is asked %d times", n), n, func(st target.Stats) map[string]int { return st.Refused })
}

func (r *run) each(ctx context.Context, what string, n int, count func(target.Stats) map[string]int) error {
	before := count(r.targets.Stats())
	return r.eventually(ctx, what, func() error {
		now := count(r.targets.Stats())
		for _, address := range r.targets.Addresses() {
			if now[address] < before[address]+n {
				return fmt.Errorf("%s was at %d and is at %d", address, before[address], now[address])
			}
		}
		return nil
	})
}

// freeze makes the targets answer 503, or as usual again.
func (r *run) freeze(frozen bool) {
	if frozen {
		// A scrape's time may be a little before it is asked for.
		r.rest = append(r.rest, span{time.Now().UnixMilli() - 10, 1 << 62})
		r.targets.Freeze(true)
		return
	}
	r.targets.Freeze(false)
	r.rest[len(r.rest)-1].to = time.Now().UnixMilli()
}

// drained waits until all that was owed arrived and nothing waits.
func (r *run) drained(ctx context.Context) error {
	return r.eventually(ctx, "everything accepted arrives", func() error {
		if n := r.sink.Prove(nil).Owed; n > 0 {
			return fmt.Errorf("%d samples of earlier processes are missing", n)
		}
		n, err := r.metric(ctx, "weir_journal_pending_blocks", "")
		if err == nil && n > 0 {
			err = fmt.Errorf("%v blocks are in the journal", n)
		}
		return err
	})
}

func (r *run) data() string { return filepath.Join(r.o.Dir, "data") }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
