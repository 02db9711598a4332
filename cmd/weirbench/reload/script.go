package reload

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/process"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/engine/watch"
)

// warmUp is the number of saves before the measurement: the first ones fill caches.
const warmUp = 20

// measureScript saves the script under load, first with good endpoints and then with dead
// ones.
func (r *run) measureScript(ctx context.Context) error {
	r.load, r.relabel, r.nodes = true, false, r.o.Nodes
	return r.serve(ctx, func(ctx context.Context) error {
		if _, err := r.saveEvery(ctx, warmUp, r.o.Every, r.writeScript); err != nil {
			return err
		}
		if r.measures(PartSaves) {
			if err := r.measureSaves(ctx); err != nil {
				return err
			}
		}
		if r.measures(PartDead) {
			return r.measureDead(ctx)
		}
		return nil
	})
}

// measureSaves saves the script with good endpoints.
func (r *run) measureSaves(ctx context.Context) error {
	before, err := r.levels(ctx)
	if err != nil {
		return err
	}
	saved, err := r.saveEvery(ctx, r.o.Saves, r.o.Every, r.writeScript)
	if err != nil {
		return err
	}
	s := r.probe.swaps(saved)
	what := fmt.Sprintf("save to serving, one script among %d nodes", r.o.Nodes)
	r.table.times(what+", p50", 15*time.Millisecond, quantile(s.serving, 0.5)-watch.Quiet)
	r.table.times(what+", p99", 60*time.Millisecond, quantile(s.serving, 0.99)-watch.Quiet)
	r.table.times(fmt.Sprintf("pause of senders in a swap, p99 (p50 %s; without a swap p99 %s, p50 %s)",
		round(quantile(s.waited, 0.5)), round(quantile(s.usual, 0.99)), round(quantile(s.usual, 0.5))), 2*time.Millisecond, quantile(s.waited, 0.99))
	r.table.distribution("save to serving, with the 20 ms of waiting", s.serving)
	r.table.distribution("pause of senders in a swap", s.waited)
	r.table.distribution("pause of senders without a swap", s.usual)
	if err := r.checkErrors(ctx); err != nil {
		return err
	}
	if err := r.checkLevels(ctx, before); err != nil {
		return err
	}
	return r.checkLoss(ctx, fmt.Sprintf("%d saves", r.o.Saves))
}

// checkErrors notes whether the script failed. A call that fails costs more than one that
// does not, so the times would be those of another script.
func (r *run) checkErrors(ctx context.Context) error {
	const name = "weir_script_errors_total"
	families, err := r.weir.Metrics(ctx)
	if err != nil {
		return err
	}
	n := 0.0
	if families[name] != nil { // there are no series before the first error
		if n, err = process.Sum(families, name, ""); err != nil {
			return err
		}
	}
	r.table.promise(fmt.Sprintf("errors of scripts, %d saves", r.o.Saves), "0", fmt.Sprint(n), n == 0)
	return nil
}

// checkLoss lets everything arrive and notes what did not, or arrived twice.
func (r *run) checkLoss(ctx context.Context, during string) error {
	r.targets.Freeze(true)
	defer r.targets.Freeze(false)
	r.resting.Store(true)
	defer r.resting.Store(false)
	if err := r.drain(ctx); err != nil {
		return err
	}
	samples, lines := r.missingSamples(), r.missingLines()
	s, l := r.sink.Stats(false), r.logs.Stats(false)
	for _, x := range []struct {
		what             string
		all, missing, st int64
	}{{"samples", s.Samples, samples, s.Duplicates}, {"lines", l.Lines, lines, l.Duplicates}} {
		r.table.promise(fmt.Sprintf("%s lost, %s (%d arrived)", x.what, during, x.all), "0", fmt.Sprint(x.missing), x.missing == 0)
		r.table.promise(fmt.Sprintf("%s duplicated, %s", x.what, during), "0", fmt.Sprint(x.st), x.st == 0)
	}
	return nil
}

// drain waits until as many samples and lines have arrived as there are, or until no more
// arrive. It compares totals only: a proof of what is missing takes long, and the endpoint
// cannot receive meanwhile.
func (r *run) drain(ctx context.Context) error {
	arrived := func() int64 {
		s, l := r.sink.Stats(false), r.logs.Stats(false)
		return s.Samples - s.Duplicates + l.Lines - l.Duplicates
	}
	for before := int64(-1); ; before = arrived() {
		err := r.eventually(ctx, "everything arrives", func() error {
			want := r.targets.Stats().Total()*int64(r.o.Series) + r.files.Stats(false).Lines
			if n := arrived(); n < want {
				return fmt.Errorf("%d of %d samples and lines have arrived", n, want)
			}
			return nil
		})
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || r.weir.ExitError() != nil:
			return err
		case arrived() <= before:
			return nil // the rest is lost
		}
	}
}

// missingSamples returns how many samples the targets served that did not arrive.
func (r *run) missingSamples() (n int64) {
	served := r.targets.Stats().Scrapes
	p := r.sink.Prove(served)
	for address, scrapes := range served {
		n += int64((r.o.Series - p.Sequences[address]) * scrapes)
		for _, sequences := range p.Missing[address] {
			n += int64(sequences)
		}
	}
	return n
}

// missingLines returns how many lines were written that did not arrive.
func (r *run) missingLines() int64 {
	st := r.logs.Stats(true)
	n := st.Gaps
	for name, written := range r.files.Stats(true).Written {
		n += int64(written)
		if last, ok := st.Last[name]; ok {
			n -= int64(last - st.First[name] + 1)
		}
	}
	return n
}

// measureDead saves the script once per second while the endpoints of the load are dead.
func (r *run) measureDead(ctx context.Context) error {
	for _, s := range []*sink.Server{r.sink, r.logs} {
		if err := s.SetFault(&sink.Fault{Reset: true}); err != nil {
			return err
		}
	}
	n := int(math.Ceil(r.o.DeadFor.Seconds()))
	var memory []float64
	var status []time.Duration
	if _, err := r.saveEvery(ctx, n, time.Second, func() error {
		rss, err := r.resident()
		if err != nil {
			return err
		}
		memory = append(memory, rss)
		asked := time.Now()
		if err := r.askStatus(ctx); err != nil {
			return err
		}
		status = append(status, time.Since(asked))
		return r.writeScript()
	}); err != nil {
		return fmt.Errorf("while the endpoints were dead: %w", err)
	}
	during := fmt.Sprintf("%d saves in %s with a dead endpoint", n, r.o.DeadFor)
	r.table.promise("deadlocks, "+during, "0", "0", true) // else a version was awaited in vain
	r.table.times("status responds, "+during+", p99", 100*time.Millisecond, quantile(status, 0.99))
	early, late := mean(memory[n/6:n/6+(n+5)/6]), mean(memory[n-(n+9)/10:])
	r.table.promise("memory, "+during, "flat", fmt.Sprintf("%.0f MB early, %.0f MB at the end", early/1e6, late/1e6), late < early*maxGrowth)
	for _, s := range []*sink.Server{r.sink, r.logs} {
		if err := s.SetFault(nil); err != nil {
			return err
		}
	}
	return r.checkLoss(ctx, during)
}

// maxGrowth is how much memory may grow to count as flat.
const maxGrowth = 1.2

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// askStatus requests the status of all nodes.
func (r *run) askStatus(ctx context.Context) error {
	resp, err := r.weir.Get(ctx, "/api/v0/status")
	if err != nil {
		return fmt.Errorf("cannot get the status: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Errorf("cannot get the status: %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// resident returns the resident memory of weir in bytes.
func (r *run) resident() (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.weir.PID()))
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of weir, which works on Linux only: %w", err)
	}
	var kB float64
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kB); err != nil {
		return 0, fmt.Errorf("cannot read the memory of weir: %w", err)
	}
	return kB * 1024, nil
}
