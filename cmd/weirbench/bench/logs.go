package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/cmd/weirbench/sink"
)

// LogScenario is work with log lines at which collectors are measured.
type LogScenario struct {
	Name   string
	Help   string
	Files  int
	JSON   bool
	Stages string // processing of each line; "" means none

	// Lines is the number of lines that are written as fast as possible, after
	// Warm lines. With a Rate per second, lines are written for Measure instead.
	Lines   int
	Warm    int
	Rate    int
	Measure time.Duration

	// RotateAt is the size from which files are renamed; 0 means never.
	RotateAt int64

	Usual  []string // the collectors that are usually measured
	Rounds int
}

// LogScenarios returns the presets. The first one is the default.
func LogScenarios() []LogScenario {
	with := func(name, stages, help string, usual ...string) LogScenario {
		return LogScenario{
			Name: name, Help: help, Stages: stages, JSON: stages != "",
			Files: 10, Lines: 1_000_000, Warm: 10_000, Usual: append([]string{"weir"}, usual...), Rounds: 3,
		}
	}
	same := "JSON: level becomes a label, debug is dropped, the line made of three fields; "
	files := with("files", "", "1,000 files, 20,000 lines/s in all, files renamed at 512 KiB, sent on as they are", "rsyslog", "syslog-ng")
	files.Files, files.Rate, files.Measure, files.RotateAt, files.Lines = 1000, 20_000, time.Minute, 512<<10, 0
	return []LogScenario{
		with("passthrough", "", "a million lines of 200 bytes from 10 files, sent on as they are", "floor", "rsyslog", "syslog-ng"),
		with("native", "native", same+"by native stages"),
		with("lua", "lua", same+"by a function in Lua"),
		with("lua-operations", "operations", same+"by three operations that a script in Lua orders"),
		with("js", "js", same+"by a function in JavaScript"),
		with("logql", "logql", same+"by stage.logql"),
		files,
	}
}

// LogOutage returns the load of an outage.
func LogOutage() LogScenario {
	s, err := LogScenarioNamed("files")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	s.Help, s.Files, s.RotateAt = "100 files, 20,000 lines/s in all", 100, 1<<20
	return s
}

// LogScenarioNamed returns a preset.
func LogScenarioNamed(name string) (LogScenario, error) {
	all := LogScenarios()
	if i := slices.IndexFunc(all, func(s LogScenario) bool { return s.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return LogScenario{}, fmt.Errorf("cannot run scenario %q: there are %s", name, strings.Join(names, ", "))
}

// Validate returns an error if s is invalid.
func (s LogScenario) Validate() error {
	switch {
	case s.Warm < s.Files:
		return fmt.Errorf("cannot tell when all files arrive: %d lines before measuring are fewer than the %d files", s.Warm, s.Files)
	case s.Rate == 0 && s.Lines < 1 || s.Lines < 0 || s.Rate < 0:
		return errors.New("cannot measure without lines")
	case s.Rate > 0 && s.Measure < time.Second:
		return fmt.Errorf("cannot measure for %s: at least 1s", s.Measure)
	}
	return s.written("").Validate()
}

// written returns the options of the writer.
func (s LogScenario) written(dir string) logfiles.Options {
	return logfiles.Options{Dir: dir, Files: s.Files, JSON: s.JSON, RotateAt: s.RotateAt, Rotation: logfiles.Rename, Keep: 2}
}

// drops reports whether the lines of a sequence are dropped.
func (s LogScenario) drops(sequence string) bool {
	return s.Stages != "" && strings.HasSuffix(sequence, "d")
}

// LogRound is the result of one round of a collector.
type LogRound struct {
	Collector string `json:"collector"`
	Version   string `json:"version"`
	Number    int    `json:"round"`

	Seconds    float64 `json:"seconds"`     // from the first line until the arrival of the last one
	CPUSeconds float64 `json:"cpu_seconds"` // user and system, in that time and one second more
	Lines      int64   `json:"lines"`       // lines written in that time
	LineBytes  int64   `json:"line_bytes"`  // size of the lines that arrived in that time
	Bytes      int64   `json:"bytes"`       // size of the requests in that time
	Requests   int64   `json:"requests"`
	PeakRSS    int64   `json:"peak_rss"`    // bytes, since the start
	EndRSS     int64   `json:"end_rss"`     // bytes, at the end
	FirstAfter float64 `json:"first_after"` // seconds from the start until the lines of the warm-up had arrived
	OtherCores float64 `json:"other_cores"` // cores that other programs of the machine used in that time
	Streams    int     `json:"streams"`

	Expected  int64    `json:"expected"`  // lines that should arrive, in the whole round
	Delivered int64    `json:"delivered"` // lines that arrived
	Faults    []string `json:"faults"`
}

// PerMillion returns the CPU seconds per million lines that were read.
func (r *LogRound) PerMillion() float64 { return r.CPUSeconds / float64(r.Lines) * 1e6 }

func (r *LogRound) peakMB() float64 { return float64(r.PeakRSS) / 1e6 }

func (r *LogRound) arrived() (got, want int64, faults []string) {
	return r.Delivered, r.Expected, r.Faults
}

// logJob is the data for the templates of log collectors.
type logJob struct {
	Dir      string // directory of the round, with the files of the collector
	LogDir   string // directory of the log files
	Files    string // pattern of the log files
	MaxFiles int
	PushURL  string
	LinesURL string // URL for plain lines
	TCPPort  string // port for plain lines
	Stages   string
	Next     string // weir's component after the source
}

func newLogJob(s LogScenario, dir, logDir string, h Hello) (logJob, error) {
	_, port, err := net.SplitHostPort(h.TCP)
	if err != nil {
		return logJob{}, fmt.Errorf("cannot read the sink's address: %w", err)
	}
	j := logJob{
		Dir: dir, LogDir: logDir, Files: filepath.Join(logDir, "*.log"), MaxFiles: s.Files + 10,
		PushURL: h.Push, LinesURL: h.Lines, TCPPort: port, Stages: s.Stages, Next: "loki.write.sink",
	}
	switch s.Stages {
	case "":
	case "native", "logql":
		j.Next = "loki.process.bench"
	default:
		j.Next = "bench." + s.Stages + ".default"
	}
	return j, nil
}

// logRound is the state of a running measurement.
type logRound struct {
	s       LogScenario
	dir     string
	sink    *child
	writer  *child
	program *process
	began   time.Time
	out     LogRound
}

// MeasureLogs measures one collector once. dir is a directory for temporary
// files.
func MeasureLogs(ctx context.Context, c *Collector, s LogScenario, number int, dir string) (_ *LogRound, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	r := &logRound{s: s, dir: dir, out: LogRound{Collector: c.Title, Version: c.Version, Number: number}}
	defer func() {
		if stopErr := r.stop(); err == nil {
			err = stopErr
		}
	}()
	if err := r.start(ctx, c); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{r.warmUp, r.measure, r.compareDelivered} {
		if err := step(ctx); err != nil {
			if r.program.ended() == nil {
				err = fmt.Errorf("%w; the last output of %s:\n%s", err, c.Title, r.program.outputTail())
			}
			return nil, err
		}
	}
	return &r.out, nil
}

// start starts the sink, the writer and, when there are lines, the collector.
func (r *logRound) start(ctx context.Context, c *Collector) (err error) {
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	work, logs := filepath.Join(r.dir, "collector"), filepath.Join(r.dir, "logs")
	for _, d := range []string{work, logs} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			return fmt.Errorf("cannot make a directory for the round: %w", err)
		}
	}
	if r.sink, err = startChild("sink", r.dir, cores{}, "sink", "--listen-addr=127.0.0.1:0"); err != nil {
		return err
	}
	o := r.s.written(logs)
	r.writer, err = startChild("writer", r.dir, cores{}, "files", "--dir="+o.Dir, "--files="+strconv.Itoa(o.Files), fmt.Sprintf("--json=%t", o.JSON),
		fmt.Sprintf("--rotate-at=%d", o.RotateAt), "--rotation="+string(o.Rotation), "--keep="+strconv.Itoa(o.Keep))
	if err != nil {
		return err
	}
	if err := r.write(ctx, "write", r.s.Warm); err != nil {
		return err
	}
	j, err := newLogJob(r.s, work, logs, r.sink.Hello)
	if err != nil {
		return err
	}
	cmd, err := c.prepare(work, j)
	if err != nil {
		return err
	}
	r.began = time.Now()
	r.program, err = startProcess(c.Name, cmd, r.dir, cores{})
	return err
}

// write makes the writer write lines now, or at a rate from now on.
func (r *logRound) write(ctx context.Context, what string, lines int) error {
	return r.writer.command(ctx, "POST", fmt.Sprintf("/%s?lines=%d", what, lines), nil)
}

// logQuiet is how long nothing must arrive before lines count as lost.
const logQuiet = 20 * time.Second

// arrive waits until all written lines have arrived or no more lines arrive. at
// is the time at which this was detected.
func (r *logRound) arrive(ctx context.Context) (at time.Time, all bool, err error) {
	most, last := int64(-1), time.Now()
	for {
		var got sink.Stats
		var written logfiles.Stats
		err := errors.Join(r.writer.command(ctx, "GET", "/stats?detail=1", &written), r.sink.command(ctx, "GET", "/stats", &got))
		if err != nil {
			return at, false, err
		}
		if at = time.Now(); got.Lines >= r.expected(written) {
			return at, true, nil
		}
		if got.Lines > most {
			most, last = got.Lines, at
		} else if at.Sub(last) > logQuiet {
			return at, false, nil
		}
		if err := r.wait(ctx, 20*time.Millisecond); err != nil {
			return at, false, err
		}
	}
}

// expected returns the number of lines that should arrive.
func (r *logRound) expected(written logfiles.Stats) (n int64) {
	for sequence, lines := range written.Written {
		if !r.s.drops(sequence) {
			n += int64(lines)
		}
	}
	return n
}

func (r *logRound) warmUp(ctx context.Context) error {
	at, all, err := r.arrive(ctx)
	if err != nil {
		return err
	}
	if !all {
		return &behindError{fmt.Sprintf("%d lines of the warm-up have not all arrived", r.s.Warm)}
	}
	r.out.FirstAfter = at.Sub(r.began).Seconds()
	return r.wait(ctx, 2*time.Second)
}

// logReading contains all values at one time.
type logReading struct {
	program, sink, writer usage
	all                   float64
	stats                 sink.Stats
	written               logfiles.Stats
	at                    time.Time
}

func (r *logRound) read(ctx context.Context) (m logReading, err error) {
	errs := make([]error, 6)
	m.at = time.Now()
	m.program, errs[0] = readUsage(r.program.cmd.Process.Pid)
	m.sink, errs[1] = readUsage(r.sink.cmd.Process.Pid)
	m.writer, errs[2] = readUsage(r.writer.cmd.Process.Pid)
	m.all, errs[3] = busy()
	errs[4] = r.sink.command(ctx, "GET", "/stats", &m.stats)
	errs[5] = r.writer.command(ctx, "GET", "/stats", &m.written)
	return m, errors.Join(errs...)
}

func (r *logRound) measure(ctx context.Context) error {
	a, err := r.read(ctx)
	if err != nil {
		return err
	}
	if r.s.Rate > 0 {
		if err := r.write(ctx, "rate", r.s.Rate); err != nil {
			return err
		}
		if err := r.wait(ctx, r.s.Measure); err != nil {
			return err
		}
		err = r.write(ctx, "rate", 0)
	} else {
		err = r.write(ctx, "write", r.s.Lines)
	}
	if err != nil {
		return err
	}
	arrived, _, err := r.arrive(ctx)
	if err != nil {
		return err
	}
	if err := r.wait(ctx, time.Second); err != nil { // deferred work counts too
		return err
	}
	b, err := r.read(ctx)
	if err != nil {
		return err
	}
	o := &r.out
	o.Seconds = arrived.Sub(a.at).Seconds()
	o.CPUSeconds = b.program.CPU - a.program.CPU
	o.OtherCores = max(0, (b.all-a.all-o.CPUSeconds-(b.sink.CPU-a.sink.CPU)-(b.writer.CPU-a.writer.CPU))/b.at.Sub(a.at).Seconds())
	o.Lines = b.written.Lines - a.written.Lines
	o.LineBytes = b.stats.LineBytes - a.stats.LineBytes
	o.Bytes, o.Requests = b.stats.Bytes-a.stats.Bytes, b.stats.Requests-a.stats.Requests
	o.PeakRSS, o.EndRSS = b.program.Peak, b.program.RSS
	return nil
}

// compareDelivered compares the written lines with those that arrived.
func (r *logRound) compareDelivered(ctx context.Context) error {
	var got sink.Stats
	var written logfiles.Stats
	if err := errors.Join(r.writer.command(ctx, "GET", "/stats?detail=1", &written), r.sink.command(ctx, "GET", "/stats?detail=1", &got)); err != nil {
		return err
	}
	r.out.Faults = r.findFaults(written, got)
	return nil
}

// findFaults records the numbers of written and arrived lines, and returns all
// deviations. If there are none, each expected line arrived once and in order,
// and no other lines arrived.
func (r *logRound) findFaults(written logfiles.Stats, got sink.Stats) (faults []string) {
	o := &r.out
	o.Expected, o.Delivered, o.Streams = r.expected(written), got.Lines, got.Streams
	for _, sequence := range slices.Sorted(mapKeys(written.Written, got.Last)) {
		n, want := got.Last[sequence], written.Written[sequence]
		if r.s.drops(sequence) {
			want = 0
		}
		if first := got.First[sequence]; n != want || n > 0 && first != 1 {
			faults = append(faults, fmt.Sprintf("lines 1 to %d of %s were to arrive, %d to %d did", want, sequence, first, n))
		}
	}
	if n := len(faults); n > 3 {
		faults = append(faults[:3], fmt.Sprintf("%d more sequences like that", n-3))
	}
	add := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	add(o.Delivered != o.Expected, "%d lines arrived of %d", o.Delivered, o.Expected)
	add(got.Gaps > 0, "%d gaps in sequences", got.Gaps)
	add(got.Duplicates > 0, "%d duplicates in sequences", got.Duplicates)
	add(got.Reordered > 0, "%d late numbers in sequences", got.Reordered)
	add(got.Unnumbered > 0, "%d lines that nobody wrote", got.Unnumbered)
	add(got.Invalid > 0, "%d requests that cannot be read", got.Invalid)
	return faults
}

// mapKeys yields the keys of several maps. A key in several maps is repeated.
func mapKeys(ms ...map[string]int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i, m := range ms {
			for k := range m {
				if i > 0 {
					if _, again := ms[0][k]; again {
						continue
					}
				}
				if !yield(k) {
					return
				}
			}
		}
	}
}

// wait waits for d. It returns early if ctx ends or a required process ends.
func (r *logRound) wait(ctx context.Context, d time.Duration) error {
	return waitFor(ctx, d, r.program, r.sink.process, r.writer.process)
}

func (r *logRound) stop() error {
	var errs []error
	if r.program != nil {
		errs = append(errs, r.program.stop())
	}
	if r.writer != nil {
		errs = append(errs, r.writer.stop())
	}
	if r.sink != nil {
		errs = append(errs, r.sink.stop())
	}
	return errors.Join(errs...)
}
