package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/graph"
	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// Outage is the result of a measurement of one collector during and after an
// outage of its endpoint.
type Outage struct {
	Collector string    `json:"collector"`
	Version   string    `json:"version"`
	Began     time.Time `json:"began"`
	Machine   Machine   `json:"machine"`
	Command   string    `json:"command"`
	Help      string    `json:"help"` // description of the load
	Unit      string    `json:"unit"` // samples or lines; all of the following numbers count these

	DownAt    float64 `json:"down_at"`    // seconds since the start, as are the following times
	UpAt      float64 `json:"up_at"`      // the endpoint was available again
	FirstAt   float64 `json:"first_at"`   // the first samples arrived after the outage
	DrainedAt float64 `json:"drained_at"` // nearly all samples had arrived

	Live        float64 `json:"live"`          // samples per second before the outage
	Backlog     int64   `json:"backlog"`       // samples that were scraped and had not arrived at the end of the outage
	DrainRate   float64 `json:"drain_rate"`    // samples per second from FirstAt to DrainedAt
	RSSBefore   float64 `json:"rss_before"`    // bytes, mean of the time immediately before the outage
	RSSEnd      float64 `json:"rss_end"`       // at the end of the outage
	RSSHighest  float64 `json:"rss_highest"`   // highest such mean during the outage
	RSSDraining float64 `json:"rss_draining"`  // the highest value from UpAt to DrainedAt
	LateBefore  int64   `json:"late_before"`   // scrapes that were late by half an interval or missing, before UpAt
	LateAfter   int64   `json:"late_draining"` // the same while the backlog was sent
	Missing     int64   `json:"missing"`       // samples that were scraped and never arrived
	Duplicates  int64   `json:"duplicates"`    // samples that arrived more than once
	Reordered   int64   `json:"reordered"`     // samples that arrived out of order

	Over []Moment `json:"over"`
}

// Moment is one reading.
type Moment struct {
	Meter
	Backlog int64 `json:"backlog"` // samples that were scraped and have not arrived
}

// Growth returns the largest change of the memory during the outage, as a
// fraction of the memory before.
func (o *Outage) Growth() float64 { return max(o.RSSHighest, o.RSSEnd)/o.RSSBefore - 1 }

// DrainFactor returns the ratio of the rates of the backlog and of live samples.
func (o *Outage) DrainFactor() float64 { return o.DrainRate / o.Live }

// load is the load during an outage: scrapes or lines.
type load interface {
	warmUp(context.Context) error
	wait(context.Context, time.Duration) error
	stop() error
	// progress returns the numbers of created and arrived samples or lines.
	progress(context.Context) (progress, error)
	// finish ends the load. After that, settled returns what did not arrive.
	finish(context.Context) error
	countMissing(context.Context, *Outage) error
}

type progress struct{ made, arrived, late int64 }

// outage is the state of a running measurement.
type outage struct {
	load
	o       *Outage
	program *process
	sink    *child
	began   time.Time
	calm    time.Duration // the time for one mean of the memory
	every   time.Duration // the interval of the load
}

// MeasureOutage runs a collector with the load of a scenario for its warm-up,
// then with a dead endpoint for down, and then until the backlog is sent, for at
// most down and a minute.
func MeasureOutage(ctx context.Context, c *Collector, s Scenario, down time.Duration, dir string, log io.Writer) (_ *Outage, err error) {
	r := &round{s: s, dir: dir}
	if r.kept, err = s.kept(); err != nil {
		return nil, err
	}
	o := newOutage(c, "samples", fmt.Sprintf("%d targets × %d series every %s", s.Load.Targets, s.Load.Series, s.Interval))
	o.Live = float64(r.kept*s.Load.Targets) / s.Interval.Seconds()
	return o, measureOutage(ctx, r, func() (*outage, error) {
		err := r.start(c)
		return &outage{load: r, o: o, program: r.program, sink: r.sink, began: r.began, calm: s.Warmup / 2, every: s.Interval}, err
	}, down, log)
}

// MeasureLogOutage is MeasureOutage for lines. s must have a rate; its Measure is
// the warm-up.
func MeasureLogOutage(ctx context.Context, c *Collector, s LogScenario, down time.Duration, dir string, log io.Writer) (_ *Outage, err error) {
	r := &logRound{s: s, dir: dir}
	o := newOutage(c, "lines", fmt.Sprintf("%d files, %d lines/s", s.Files, s.Rate))
	o.Live = float64(s.Rate)
	return o, measureOutage(ctx, &steady{r}, func() (*outage, error) {
		err := r.start(ctx, c)
		return &outage{load: &steady{r}, o: o, program: r.program, sink: r.sink, began: r.began, calm: s.Measure / 2, every: time.Second}, err
	}, down, log)
}

func newOutage(c *Collector, unit, help string) *Outage {
	return &Outage{Collector: c.Title, Version: c.Version, Began: time.Now(), Machine: ThisMachine(), Unit: unit, Help: help}
}

// measureOutage starts the load, measures and stops it.
func measureOutage(ctx context.Context, l load, start func() (*outage, error), down time.Duration, log io.Writer) (err error) {
	defer func() {
		if stopErr := l.stop(); err == nil {
			err = stopErr
		}
	}()
	g, err := start()
	if err != nil {
		return err
	}
	err = g.measure(ctx, down, log)
	if err != nil && g.program.ended() == nil {
		err = fmt.Errorf("%w; the last output of %s:\n%s", err, g.o.Collector, g.program.outputTail())
	}
	return err
}

func (g *outage) measure(ctx context.Context, down time.Duration, log io.Writer) error {
	o := g.o
	say := func(format string, args ...any) {
		fmt.Fprintf(log, "%6.1f s  "+format+"\n", append([]any{g.since()}, args...)...)
	}
	if err := g.warmUp(ctx); err != nil {
		return err
	}
	calm := g.calm
	say("%s of all arrive; measuring for %s", o.Unit, calm)
	a, err := g.moment(ctx)
	if err != nil {
		return err
	}
	if err := g.readFor(ctx, calm, nil); err != nil {
		return err
	}
	b := o.Over[len(o.Over)-1]
	o.RSSBefore = o.rss(a.At, b.At)
	late, err := g.countLate(ctx)
	if err != nil {
		return err
	}

	if err := g.breakSink(ctx, true); err != nil {
		return err
	}
	o.DownAt = g.since()
	say("the endpoint is dead for %s; %.0f MB", down, o.RSSBefore/1e6)
	if err := g.readFor(ctx, down, nil); err != nil {
		return err
	}
	end := o.Over[len(o.Over)-1]
	o.Backlog = end.Backlog
	part := max(calm, down/10).Seconds()
	o.RSSEnd = o.rss(end.At-part, end.At)
	for from := o.DownAt; from+part <= end.At+1; from += part / 2 {
		o.RSSHighest = max(o.RSSHighest, o.rss(from, from+part))
	}
	lateDown, err := g.countLate(ctx)
	if err != nil {
		return err
	}
	o.LateBefore = lateDown - late
	say("the endpoint is back; %d %s wait, %.0f MB", o.Backlog, o.Unit, o.RSSEnd/1e6)

	if err := g.breakSink(ctx, false); err != nil {
		return err
	}
	o.UpAt = g.since()
	arrived := int64(-1)
	var first Moment
	err = g.readFor(ctx, down+time.Minute, func(m Moment) bool {
		o.RSSDraining = max(o.RSSDraining, float64(m.RSS))
		if arrived < 0 {
			arrived = m.Backlog
		}
		if o.FirstAt == 0 && m.Backlog < arrived {
			o.FirstAt, first = m.At, m
		}
		// The data of one interval is always in flight.
		return o.FirstAt > 0 && m.Backlog <= int64(o.Live*min(1, g.every.Seconds()))
	})
	if err != nil {
		return err
	}
	drained := o.Over[len(o.Over)-1]
	if o.DrainedAt = drained.At; o.FirstAt == 0 || o.DrainedAt >= o.UpAt+(down+time.Minute).Seconds() {
		return fmt.Errorf("cannot wait for the backlog: %d %s of %d wait after %s", drained.Backlog, o.Unit, o.Backlog, down+time.Minute)
	}
	took := max(drained.At-first.At, 0.1)
	o.DrainRate = (float64(first.Backlog-drained.Backlog) + took*o.Live) / took
	lateDrained, err := g.countLate(ctx)
	if err != nil {
		return err
	}
	o.LateAfter = lateDrained - lateDown
	say("the backlog is sent, %.1f s after the first of it, %.0f %s/s, %.1f × the live rate", took, o.DrainRate, o.Unit, o.DrainFactor())
	if err := g.readFor(ctx, calm, nil); err != nil {
		return err
	}
	return g.awaitDelivery(ctx)
}

// awaitDelivery waits until everything has arrived and counts missing data.
func (g *outage) awaitDelivery(ctx context.Context) error {
	if err := g.finish(ctx); err != nil {
		return err
	}
	for deadline := time.Now().Add(drainWithin); ; {
		if err := g.countMissing(ctx, g.o); err != nil {
			return err
		}
		if g.o.Missing == 0 || time.Now().After(deadline) {
			return nil
		}
		if err := g.wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (r *round) finish(ctx context.Context) error {
	return r.targets.command(ctx, "POST", "/freeze", nil)
}

func (r *round) countMissing(ctx context.Context, o *Outage) error {
	var served target.Stats
	var got sink.Stats
	if err := errors.Join(r.targets.command(ctx, "GET", "/stats", &served), r.sink.command(ctx, "GET", "/stats?detail=1", &got)); err != nil {
		return err
	}
	o.countMissing(served, got, r.kept)
	return nil
}

func (r *round) progress(ctx context.Context) (p progress, err error) {
	var served target.Stats
	var got sink.Stats
	// In this order: data that arrives in between reduces the backlog, which can
	// only become slightly negative.
	err = errors.Join(r.targets.command(ctx, "GET", "/stats", &served), r.sink.command(ctx, "GET", "/stats", &got))
	return progress{made: served.Total() * int64(r.kept), arrived: got.Samples, late: served.Late}, err
}

// steady is a logRound whose files are written continuously.
type steady struct{ *logRound }

func (r *steady) warmUp(ctx context.Context) error {
	if err := r.logRound.warmUp(ctx); err != nil {
		return err
	}
	if err := r.write(ctx, "rate", r.s.Rate); err != nil {
		return err
	}
	return r.wait(ctx, r.s.Measure)
}

func (r *steady) progress(ctx context.Context) (p progress, err error) {
	var written logfiles.Stats
	var got sink.Stats
	err = errors.Join(r.writer.command(ctx, "GET", "/stats?detail=1", &written), r.sink.command(ctx, "GET", "/stats", &got))
	return progress{made: r.expected(written), arrived: got.Lines}, err
}

func (r *steady) finish(ctx context.Context) error { return r.write(ctx, "rate", 0) }

func (r *steady) countMissing(ctx context.Context, o *Outage) error {
	var written logfiles.Stats
	var got sink.Stats
	if err := errors.Join(r.writer.command(ctx, "GET", "/stats?detail=1", &written), r.sink.command(ctx, "GET", "/stats?detail=1", &got)); err != nil {
		return err
	}
	o.Missing, o.Duplicates, o.Reordered = 0, got.Duplicates, got.Reordered
	for sequence, n := range written.Written {
		if n > 0 && !r.s.drops(sequence) {
			o.Missing += int64(n - got.Last[sequence])
		}
	}
	o.Missing += got.Gaps
	return nil
}

// countMissing counts the samples that were served and did not arrive.
func (o *Outage) countMissing(served target.Stats, got sink.Stats, kept int) {
	o.Duplicates, o.Reordered = got.Duplicates, got.Reordered
	short := int64(0) // targets whose first or last scrape is missing
	for address, n := range served.Scrapes {
		if n > 0 && (got.First[address] != 1 || got.Last[address] != n) {
			short++
		}
	}
	// For duplicates, only those in sequences are known.
	o.Missing = max(served.Total()*int64(kept)-got.Samples, got.Gaps, short)
}

func (g *outage) since() float64 { return time.Since(g.began).Seconds() }

// countLate returns the number of late scrapes so far.
func (g *outage) countLate(ctx context.Context) (int64, error) {
	p, err := g.progress(ctx)
	return p.late, err
}

// readFor takes readings for a time, or until done returns true. done may be nil.
func (g *outage) readFor(ctx context.Context, d time.Duration, done func(Moment) bool) error {
	every := min(time.Second, max(d/100, 100*time.Millisecond))
	if done != nil {
		every = 100 * time.Millisecond
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := g.wait(ctx, every); err != nil {
			return err
		}
		m, err := g.moment(ctx)
		if err != nil || done != nil && done(m) {
			return err
		}
	}
	return nil
}

// moment takes one reading.
func (g *outage) moment(ctx context.Context) (m Moment, err error) {
	p, err := g.progress(ctx)
	if err != nil {
		return m, err
	}
	u, err := readUsage(g.program.cmd.Process.Pid)
	if err != nil {
		return m, err
	}
	m = Moment{
		Meter:   Meter{At: g.since(), RSS: u.RSS, Anon: u.Anon, CPU: u.CPU},
		Backlog: max(0, p.made-p.arrived),
	}
	g.o.Over = append(g.o.Over, m)
	return m, nil
}

// rss returns the mean of the readings in a period.
func (o *Outage) rss(from, to float64) float64 {
	sum, n := 0.0, 0
	for _, m := range o.Over {
		if m.At >= from && m.At <= to {
			sum += float64(m.RSS)
			n++
		}
	}
	return sum / float64(max(n, 1))
}

// breakSink makes the sink reset every connection, or work normally again.
func (g *outage) breakSink(ctx context.Context, dead bool) error {
	if !dead {
		return g.sink.command(ctx, "DELETE", "/faults", nil)
	}
	req, err := http.NewRequestWithContext(ctx, "POST", g.sink.Control+"/faults", strings.NewReader(`{"reset": true}`))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot break the sink: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot break the sink: it answers %s", resp.Status)
	}
	return nil
}

// Lines returns memory in MB and backlog in millions of samples over time.
func (o *Outage) Lines() (memory, backlog graph.Line) {
	memory.Name, backlog.Name = "resident memory", o.Unit+" that wait"
	for _, m := range o.Over {
		memory.Points = append(memory.Points, graph.Point{X: m.At, Y: float64(m.RSS) / 1e6})
		backlog.Points = append(backlog.Points, graph.Point{X: m.At, Y: float64(m.Backlog) / 1e6})
	}
	return memory, backlog
}

// CSV writes about most of the readings.
func (o *Outage) CSV(w io.Writer, most int) error {
	var b strings.Builder
	b.WriteString("seconds,rss_bytes,anon_bytes,cpu_seconds,backlog_" + o.Unit + "\n")
	step := max(1, len(o.Over)/most)
	for i, m := range o.Over {
		if i%step == 0 || m.At >= o.UpAt && m.At <= o.DrainedAt {
			fmt.Fprintf(&b, "%.1f,%d,%d,%.2f,%d\n", m.At, m.RSS, m.Anon, m.CPU, m.Backlog)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Text writes the results as text.
func (o *Outage) Text(w io.Writer) error {
	memory, backlog := o.Lines()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s, %.0f s of a dead endpoint\n\n", o.Collector, o.Version, o.Help, o.UpAt-o.DownAt)
	fmt.Fprintf(&b, "memory   %s %.0f MB\nbacklog  %s %.2f million\n\n", memory.Text(60), highestOf(memory), backlog.Text(60), highestOf(backlog))
	fmt.Fprintf(&b, "memory before %.1f MB, at the end of the outage %.1f MB, highest of it %.1f MB (%+.1f %%), draining at most %.1f MB\n",
		o.RSSBefore/1e6, o.RSSEnd/1e6, o.RSSHighest/1e6, 100*o.Growth(), o.RSSDraining/1e6)
	fmt.Fprintf(&b, "backlog %d %s; first sent %.1f s after the endpoint was back, all after %.1f s: %.0f a second, %.1f × the live rate of %.0f\n",
		o.Backlog, o.Unit, o.FirstAt-o.UpAt, o.DrainedAt-o.UpAt, o.DrainRate, o.DrainFactor(), o.Live)
	if o.Unit == "samples" {
		fmt.Fprintf(&b, "late scrapes: %d in the outage, %d while the backlog was sent; ", o.LateBefore, o.LateAfter)
	}
	fmt.Fprintf(&b, "missing %s: %d, again: %d, out of order: %d\n", o.Unit, o.Missing, o.Duplicates, o.Reordered)
	_, err := io.WriteString(w, b.String())
	return err
}

func highestOf(l graph.Line) float64 {
	if len(l.Points) == 0 {
		return 0
	}
	return slices.MaxFunc(l.Points, func(a, b graph.Point) int {
		if a.Y < b.Y {
			return -1
		}
		return 1
	}).Y
}
