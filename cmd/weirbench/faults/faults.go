// Package faults runs a weir under load and simulates faults: it kills, stops and
// reloads weir, breaks its endpoint, fills its disk and flips bits in its journal,
// in an order that a seed determines. At the end it checks whether anything was
// lost.
//
// The samples that must arrive are determined without asking weir. Every sample of
// the targets is a number in a sequence (see package target). A number may be
// missing for one of four reasons, each of which is recorded per instance: the
// scrape was the last one that a process requested before it died; weir logged that
// its batch was refused until the next one was due, because of a full disk or a
// script that takes long; the
// scrape failed, as up shows; or its block was damaged on purpose, and weir counted
// exactly the damaged blocks. In addition, everything in the journal of a dead
// process must arrive. All other missing samples are lost. A duplicate must have
// the same series, timestamp and value, in whichever request. No sample may arrive
// late, and each scrape must arrive completely or not at all.
//
// After a kill in the middle of a reload, the version of the script must run that the
// history on disk names: the pinned one; the last active one if the one on disk was
// refused or rolled back, fails its tests, or was in a canary; or else the one on disk.
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

// Options are the settings of a run.
type Options struct {
	Weir     string // path of the program
	Dir      string // directory for config, journal and log
	Targets  int
	Series   int // per target
	Interval time.Duration
	Steps    int    // number of faults; every kind occurs before one is repeated
	Only     string // only the kinds whose name contains this text
	Seed     uint64 // determines the order and the random details
	// Disk is true if Dir/data is a small separate file system, which can be
	// filled.
	Disk bool
	// StopWithin is how long a stop may take while the endpoint is dead.
	StopWithin time.Duration
	MinDrain   float64       // the minimum rate at which a backlog drains, as a fraction of the rate that a slow endpoint supports
	Patience   time.Duration // limits every wait: the machine may be slow, but a hang must fail
	Out        io.Writer     // receives the events, line by line
}

// ErrLost is wrapped in the error of Run if data was lost or another check
// failed. The details were written to Out.
var ErrLost = errors.New("not everything is as it must be")

// run is the state of a run.
type run struct {
	o       Options
	rng     *rand.Rand
	began   time.Time
	sink    *sink.Server
	targets *target.Server
	weir    *process.Process // the current process
	variant int              // of the config
	saved   int              // the version of the script that was saved last
	block   string           // the block script of the node, "" for none
	queue   string           // the content of queue_config, or "" for that of the variant

	deaths   []map[string]int // by instance: the last scrape that a process had received when it died
	rest     []span           // times during which the targets were frozen
	output   []string         // output of processes that have ended
	drains   []string         // results for the slow endpoint
	problems []string
	damaged  int // number of damaged blocks
	repeated int // number of blocks that had arrived and were still in the journal when a process died
}

// span is a period, in Unix ms.
type span struct{ from, to int64 }

// Run performs one run.
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

// faults performs the faults in the order of the seed.
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

// addFailure records a failed check.
func (r *run) addFailure(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// finish waits until everything has arrived and stops weir.
func (r *run) finish(ctx context.Context) error {
	r.freeze(true)
	if err := r.refused(ctx, 2); err != nil { // so the previous batches were accepted or dropped
		return err
	}
	if err := r.drained(ctx); err != nil {
		if ctx.Err() != nil || r.weir.ExitError() != nil {
			return err
		}
		r.addFailure("%v", err) // in this case, something is probably lost
	}
	r.stop(false)
	return nil
}

// eventually calls f repeatedly until it returns nil. If it does not, eventually
// returns its last error.
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

// refused waits until every target was requested n more times while frozen.
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

// freeze makes the targets answer 503, or normally again.
func (r *run) freeze(frozen bool) {
	if frozen {
		// The time of a scrape may be slightly earlier than its request.
		r.rest = append(r.rest, span{time.Now().UnixMilli() - 10, 1 << 62})
		r.targets.Freeze(true)
		return
	}
	r.targets.Freeze(false)
	r.rest[len(r.rest)-1].to = time.Now().UnixMilli()
}

// drained waits until all pending samples have arrived and the journal is empty.
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
