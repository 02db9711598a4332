package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// Round is the result of one round of a collector.
type Round struct {
	Collector string `json:"collector"`
	Version   string `json:"version"`
	Number    int    `json:"round"`

	Seconds    float64 `json:"seconds"`     // measured time, after the warm-up
	CPUSeconds float64 `json:"cpu_seconds"` // user and system, in that time
	Samples    int64   `json:"samples"`     // samples delivered in that time
	Bytes      int64   `json:"bytes"`       // compressed size of the requests in that time
	Requests   int64   `json:"requests"`    // in that time
	PeakRSS    int64   `json:"peak_rss"`    // bytes, since the start
	EndRSS     int64   `json:"end_rss"`     // bytes, at the end
	EndAnon    int64   `json:"end_anon"`    // bytes that do not belong to a file
	FirstAfter float64 `json:"first_after"` // seconds from the start until samples of all targets had arrived
	OtherCores float64 `json:"other_cores"` // cores that other programs of the machine used in that time
	SinkCPU    float64 `json:"sink_cpu"`    // seconds
	TargetCPU  float64 `json:"target_cpu"`  // seconds
	Scraped    int64   `json:"scraped"`     // scrapes in that time
	Late       int64   `json:"late"`        // scrapes that were late by half an interval or missing
	Lost       int64   `json:"lost"`        // scrapes of that time that were answered and did not arrive, or arrived late
	Over       []Meter `json:"over"`        // resources over time, since the start

	Served    int64    `json:"served"`    // scrapes, in the whole round
	Expected  int64    `json:"expected"`  // samples of these scrapes that should arrive
	Delivered int64    `json:"delivered"` // samples that arrived
	Faults    []string `json:"faults"`    // deviations

	Tried []Try `json:"tried,omitempty"` // rates that Ceiling tried, in order
}

// PerMillion returns the CPU seconds per million samples.
func (r *Round) PerMillion() float64 { return r.CPUSeconds / float64(r.Samples) * 1e6 }

// drainWithin is how long a collector may take to deliver its samples after the
// last scrape.
const drainWithin = 30 * time.Second

// round is the state of a running measurement.
type round struct {
	s       Scenario
	dir     string
	kept    int
	sink    *child
	targets *child
	program *process
	began   time.Time
	out     Round

	one, rest cores // the cores of the collector, and those of targets and sink
}

// Measure measures one collector once. dir is a directory for temporary files.
func Measure(ctx context.Context, c *Collector, s Scenario, number int, dir string) (_ *Round, err error) {
	r := &round{s: s, dir: dir, out: Round{Collector: c.Title, Version: c.Version, Number: number}}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if r.kept, err = s.kept(); err != nil {
		return nil, err
	}
	if s.Ceiling {
		if r.one, r.rest, err = split(); err != nil {
			return nil, err
		}
	}
	defer func() {
		if stopErr := r.stop(); err == nil {
			err = stopErr
		}
	}()
	if err := r.start(c); err != nil {
		return nil, err
	}
	defer r.watch(&r.out.Over)() // before the process is stopped
	steps := []func(context.Context) error{r.warmUp, r.measure, r.drain}
	if s.Ceiling {
		steps[2] = r.peak // at the ceiling, the first scrapes may be late, which does not count
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			if r.program != nil && r.program.ended() == nil {
				err = fmt.Errorf("%w; the last output of %s:\n%s", err, c.Title, r.program.outputTail())
			}
			return nil, err
		}
	}
	return &r.out, nil
}

// start starts the sink, the targets and the collector.
func (r *round) start(c *Collector) (err error) {
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	work := filepath.Join(r.dir, "collector")
	if err := os.MkdirAll(work, 0o777); err != nil {
		return fmt.Errorf("cannot make a directory for the round: %w", err)
	}
	if err := r.startEnds(); err != nil {
		return err
	}
	cmd, err := c.prepare(work, newJob(r.s, work, r.sink.Write, r.targets.Targets))
	if err != nil {
		return err
	}
	r.began = time.Now()
	r.program, err = startProcess(c.Name, cmd, r.dir, r.one)
	return err
}

// startEnds starts the sink and the targets.
func (r *round) startEnds() (err error) {
	if r.sink, err = startChild("sink", r.dir, r.rest, "sink", "--listen-addr=127.0.0.1:0"); err != nil {
		return err
	}
	l := r.s.Load
	r.targets, err = startChild("targets", r.dir, r.rest, "targets", "--interval="+r.s.Interval.String(),
		"--targets="+strconv.Itoa(l.Targets), "--series="+strconv.Itoa(l.Series), "--sequences="+strconv.Itoa(l.Sequences),
		"--format="+string(l.Format), "--gzip="+string(l.Gzip), fmt.Sprintf("--churn=%g", l.Churn))
	if err != nil {
		return err
	}
	return err
}

// warmUp waits until samples of all targets have arrived, and then for the
// warm-up of the scenario.
func (r *round) warmUp(ctx context.Context) error {
	deadline := r.began.Add(r.s.Warmup + 2*r.s.Interval + 10*time.Second)
	for {
		var st sink.Stats
		if err := r.sink.command(ctx, "GET", "/stats?detail=1", &st); err != nil {
			return err
		}
		if len(st.Last) == r.s.Load.Targets {
			break
		}
		if time.Now().After(deadline) {
			return &behindError{fmt.Sprintf("after %s samples of %d targets of %d have arrived", time.Since(r.began).Round(time.Second), len(st.Last), r.s.Load.Targets)}
		}
		if err := r.wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	r.out.FirstAfter = time.Since(r.began).Seconds()
	return r.wait(ctx, time.Until(r.began.Add(r.s.Warmup)))
}

// reading contains all values at one time.
type reading struct {
	at                     time.Time
	program, sink, targets usage
	all                    float64
	stats                  sink.Stats
	served                 target.Stats
}

func (r *round) read(ctx context.Context) (m reading, err error) {
	errs := make([]error, 6)
	errs[0] = r.sink.command(ctx, "GET", "/stats", &m.stats)
	m.at = time.Now()
	m.program, errs[1] = readUsage(r.program.cmd.Process.Pid)
	m.sink, errs[2] = readUsage(r.sink.cmd.Process.Pid)
	m.targets, errs[3] = readUsage(r.targets.cmd.Process.Pid)
	m.all, errs[4] = busy()
	errs[5] = r.targets.command(ctx, "GET", "/stats", &m.served)
	return m, errors.Join(errs...)
}

func (r *round) measure(ctx context.Context) error {
	a, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := r.wait(ctx, r.s.Measure); err != nil {
		return err
	}
	b, err := r.read(ctx)
	if err != nil {
		return err
	}
	o := &r.out
	o.Seconds = b.at.Sub(a.at).Seconds()
	o.CPUSeconds = b.program.CPU - a.program.CPU
	o.SinkCPU, o.TargetCPU = b.sink.CPU-a.sink.CPU, b.targets.CPU-a.targets.CPU
	o.OtherCores = max(0, (b.all-a.all-o.CPUSeconds-o.SinkCPU-o.TargetCPU)/o.Seconds)
	o.Samples = b.stats.Samples - a.stats.Samples
	o.Bytes = b.stats.Bytes - a.stats.Bytes
	o.Requests = b.stats.Requests - a.stats.Requests
	o.Scraped, o.Late = b.served.Total()-a.served.Total(), b.served.Late-a.served.Late
	o.Lost = max(0, (b.stats.Gaps-a.stats.Gaps)/int64(r.s.Load.Sequences))
	if o.Samples <= 0 {
		return &behindError{fmt.Sprintf("no sample arrived in %.0f s", o.Seconds)}
	}
	if why := r.describeLateness(); r.s.Ceiling && why != "" {
		return &behindError{why}
	}
	return nil
}

// drain waits until the collector has delivered its samples, and compares them.
func (r *round) drain(ctx context.Context) error {
	if err := r.targets.command(ctx, "POST", "/freeze", nil); err != nil {
		return err
	}
	var served target.Stats
	var got sink.Stats
	for deadline := time.Now().Add(drainWithin); ; {
		err := errors.Join(
			r.targets.command(ctx, "GET", "/stats", &served),
			r.sink.command(ctx, "GET", "/stats?detail=1", &got))
		if err != nil {
			return err
		}
		r.out.Faults = r.findFaults(served, got)
		if len(r.out.Faults) == 0 || time.Now().After(deadline) {
			break
		}
		if err := r.wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return r.peak(ctx)
}

// peak reads the memory of the collector.
func (r *round) peak(context.Context) error {
	u, err := readUsage(r.program.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.out.PeakRSS, r.out.EndRSS, r.out.EndAnon = u.Peak, u.RSS, u.Anon
	return nil
}

// findFaults records the numbers of served and arrived samples, and returns all
// deviations. If there are none, each scrape of each target arrived completely,
// once and in order.
func (r *round) findFaults(served target.Stats, got sink.Stats) (faults []string) {
	o := &r.out
	o.Served, o.Expected, o.Delivered = 0, 0, got.Samples
	for address, n := range served.Scrapes {
		o.Served += int64(n)
		if n > 0 && (got.First[address] != 1 || got.Last[address] != n) {
			faults = append(faults, fmt.Sprintf("scrapes 1 to %d of %s were answered, %d to %d arrived", n, address, got.First[address], got.Last[address]))
		}
	}
	if n := len(faults); n > 3 {
		faults = append(faults[:3], fmt.Sprintf("%d more targets like that", n-3))
	}
	o.Expected = o.Served * int64(r.kept)
	add := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	add(o.Delivered != o.Expected, "%d samples arrived of %d", o.Delivered, o.Expected)
	add(got.Gaps > 0, "%d gaps in sequences", got.Gaps)
	add(got.Duplicates > 0, "%d duplicates in sequences", got.Duplicates)
	add(got.Reordered > 0, "%d late numbers in sequences", got.Reordered)
	add(got.Invalid > 0, "%d requests that cannot be read", got.Invalid)
	add(served.Aborted > 0, "%d scrapes were not read to their end", served.Aborted)
	add(r.s.V2 && got.V2 != got.Requests, "%d of %d requests were of remote write 2.0", got.V2, got.Requests)
	// Samples that were pending when the measurement began would make the
	// collector look cheap, and samples that are pending at the end would make it
	// look expensive.
	if got, due := r.measured(); math.Abs(got-due) > due/10+uneven.Seconds()*due/r.s.Measure.Seconds() {
		add(true, "%.0f samples arrived while measuring where about %.0f were due: it was catching up, or falling behind", got, due)
	}
	// A slow collector skips scrapes and would look cheap.
	if most := r.mostScrapes(); o.Served < most*95/100 {
		add(true, "%d scrapes were made where about %d were due", o.Served, most)
	}
	return faults
}

// uneven is how long collectors may keep samples to send them together.
// Prometheus does this for 5 s.
const uneven = 6 * time.Second

// measured returns the number of samples that arrived during the measurement, and
// the number that were due.
func (r *round) measured() (got, due float64) {
	return float64(r.out.Samples), float64(r.kept*r.s.Load.Targets) * r.s.Measure.Seconds() / r.s.Interval.Seconds()
}

// mostScrapes returns the number of scrapes that are due in the measured time and
// the warm-up after the first scrapes.
func (r *round) mostScrapes() int64 {
	since := r.s.Measure + r.s.Warmup - time.Duration(r.out.FirstAfter*float64(time.Second))
	return int64(since/r.s.Interval) * int64(r.s.Load.Targets)
}

// wait waits for d. It returns early if ctx ends or a required process ends.
func (r *round) wait(ctx context.Context, d time.Duration) error {
	return waitFor(ctx, d, r.program, r.sink.process, r.targets.process)
}

// waitFor waits for d. It returns early if ctx ends or one of the three processes
// ends.
func waitFor(ctx context.Context, d time.Duration, program, sink, source *process) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-program.gone:
		return program.ended()
	case <-sink.gone:
		return sink.ended()
	case <-source.gone:
		return source.ended()
	}
}

func (r *round) stop() error {
	var errs []error
	if r.program != nil {
		errs = append(errs, r.program.stop())
	}
	if r.targets != nil {
		errs = append(errs, r.targets.stop())
	}
	if r.sink != nil {
		errs = append(errs, r.sink.stop())
	}
	return errors.Join(errs...)
}
