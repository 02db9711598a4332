// Package reload saves scripts and configs of a weir under load, again and again, and
// measures the reloads from outside: how long a save takes until the new version processes
// data, how long senders wait meanwhile, and what is lost, duplicated or left behind.
//
// A probe pushes one sample every millisecond to prometheus.receive_http. The component
// that is saved writes its version into a label of this sample, and the endpoint of the
// probe sees which version processed which push. Nothing is read from weir's log, and
// delays behind the saved component do not count. The load besides the probe consists of
// scraped targets and log files, whose samples and lines are numbered (see packages target
// and logfiles), and goes through the same script.
//
// Run prints a table. A missed time is printed, because it depends on the machine. A promise
// that does not depend on the machine, for example that nothing is lost, makes Run fail.
package reload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/cmd/weirbench/process"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// Options are the settings of a run. All are required.
type Options struct {
	Weir     string // the program
	Dir      string // for the config, the scripts and the data
	Saves    int    // of the script
	Every    time.Duration
	Nodes    int // in the graph of the script that is saved
	Targets  int
	Series   int   // of each target, scraped every second
	Lines    int   // of logs per second
	Configs  []int // sizes of configs of which one component is changed
	Changes  int   // of each of these configs
	DeadFor  time.Duration
	Parts    []string      // what to measure, some of AllParts
	Patience time.Duration // limits each wait
	Out      io.Writer     // receives the table
}

// The parts of a run.
const (
	PartSaves   = "saves"   // saves of a script under load
	PartDead    = "dead"    // saves of a script while the endpoints are dead
	PartConfigs = "configs" // changes of one component of large configs
)

// AllParts returns all parts.
func AllParts() []string { return []string{PartSaves, PartDead, PartConfigs} }

// Validate returns the mistakes in o.
func (o Options) Validate() error {
	for _, part := range o.Parts {
		if !slices.Contains(AllParts(), part) {
			return fmt.Errorf("cannot measure %q: the parts are %s", part, strings.Join(AllParts(), ", "))
		}
	}
	for _, n := range append([]int{o.Nodes}, o.Configs...) {
		if n < fixedNodes {
			return fmt.Errorf("cannot make a config of %d components: at least %d are needed", n, fixedNodes)
		}
	}
	if o.Saves < 1 || o.Targets < 1 || o.Series < 1 || o.Lines < linesAtOnce || o.Changes < 1 || o.DeadFor < time.Second || o.Every <= 0 || o.Patience <= 0 {
		return fmt.Errorf("cannot measure reloads with these settings: give at least 1 save, change, target and series, %d lines, 1s of a dead endpoint, and times greater than 0", linesAtOnce)
	}
	return nil
}

// ErrBroken is returned by Run, wrapped, if weir broke a promise.
var ErrBroken = errors.New("weir broke a promise about reloads")

// run is a run in progress.
type run struct {
	o       Options
	sink    *sink.Server // of samples
	logs    *sink.Server // of lines
	targets *target.Server
	files   *logfiles.Writer
	probe   *probe // of the process that runs now
	weir    *process.Process
	table   table
	resting atomic.Bool // whether no lines are written
	load    bool        // whether there is load besides the probe
	nodes   int         // in the config
	relabel bool        // whether the config changes the label of the probe, and not the script
	version int         // that was saved last
}

// Run measures everything and prints a table.
func Run(ctx context.Context, o Options) error {
	r := &run{o: o}
	if r.measures(PartSaves) || r.measures(PartDead) {
		if err := r.measureScript(ctx); err != nil {
			return err
		}
	}
	for _, n := range o.Configs {
		if !r.measures(PartConfigs) {
			break
		}
		if err := r.measureConfig(ctx, n); err != nil {
			return err
		}
	}
	r.table.write(o.Out)
	return r.table.err()
}

// measures reports whether a part is measured.
func (r *run) measures(part string) bool { return slices.Contains(r.o.Parts, part) }

// linesAtOnce is how often per second lines are written.
const linesAtOnce = 20

// logFiles is the number of log files.
const logFiles = 5

// listen opens the endpoints and the targets.
func (r *run) listen() (err error) {
	if r.sink, err = sink.Listen("127.0.0.1:0"); err != nil {
		return err
	}
	if r.logs, err = sink.Listen("127.0.0.1:0"); err != nil {
		return err
	}
	if r.targets, err = target.Listen(target.Options{
		Targets: r.o.Targets, Series: r.o.Series, Sequences: r.o.Series, Format: target.Text, Gzip: target.GzipOff,
	}); err != nil {
		return err
	}
	dir := filepath.Join(r.o.Dir, "logs")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cannot make a directory for log files: %w", err)
	}
	r.files, err = logfiles.New(logfiles.Options{Dir: dir, Files: logFiles})
	return err
}

// writeLines writes log lines until ctx ends.
func (r *run) writeLines(ctx context.Context) error {
	tick := time.NewTicker(time.Second / linesAtOnce)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if r.resting.Load() {
			continue
		}
		if err := r.files.Write(n%logFiles, r.o.Lines/linesAtOnce); err != nil {
			return err
		}
	}
}

// serve calls f while weir runs the config, with the probe and, if r.load is set, with the
// load. It stops weir afterwards.
func (r *run) serve(ctx context.Context, f func(context.Context) error) (err error) {
	if r.probe, err = newProbe(); err != nil {
		return err
	}
	if r.load {
		if err := r.listen(); err != nil {
			return err
		}
		defer r.files.Close()
	}
	r.version++
	if err := r.writeScripts(); err != nil {
		return err
	}
	if err := r.writeConfig(); err != nil {
		return err
	}
	// An error of a part ends the rest.
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	part := func(f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil {
				cancel(err)
			}
		})
	}
	defer func() {
		cancel(nil)
		wg.Wait()
		if cause := context.Cause(ctx); err != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
	}()
	part(r.probe.serve)
	if r.load {
		part(r.sink.Serve)
		part(r.logs.Serve)
		part(r.targets.Serve)
		part(r.writeLines)
	}
	if r.weir, err = process.Start(r.o.Weir, "run", "--server.http.listen-addr=127.0.0.1:0",
		"--storage.path="+filepath.Join(r.o.Dir, "data"), "--scripts="+filepath.Join(r.o.Dir, "scripts"), r.config()); err != nil {
		return err
	}
	defer r.weir.Kill()
	var url string
	if err := r.eventually(ctx, "weir listens", func() error {
		m := receiving.FindStringSubmatch(r.weir.Output())
		if m == nil || r.weir.URL() == "" {
			return fmt.Errorf("it printed %q", r.weir.OutputTail())
		}
		url = "http://" + m[1] + "/api/v1/metrics/write"
		return nil
	}); err != nil {
		return err
	}
	part(func(ctx context.Context) error { return r.probe.run(ctx, url) })
	if err := r.await(ctx); err != nil {
		return err
	}
	if err := f(ctx); err != nil {
		return err
	}
	return r.stop()
}

var receiving = regexp.MustCompile(`component_id=prometheus\.receive_http\.probe address=(127\.0\.0\.1:[1-9]\d*)`)

// stop ends weir by SIGTERM.
func (r *run) stop() error {
	if err := r.weir.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("cannot stop weir: %w", err)
	}
	select {
	case <-r.weir.Done():
	case <-time.After(r.o.Patience):
		return fmt.Errorf("cannot stop weir within %s; its last output:\n%s", r.o.Patience, r.weir.OutputTail())
	}
	if code := r.weir.ExitCode(); code != 0 {
		return fmt.Errorf("weir ended with exit code %d; its last output:\n%s", code, r.weir.OutputTail())
	}
	return nil
}

// await waits until the version that was saved last processes data.
func (r *run) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	if err := r.probe.await(ctx, r.version); err != nil {
		return fmt.Errorf("%w; the last output of weir:\n%s", err, r.weir.OutputTail())
	}
	return nil
}

// eventually polls until f returns nil. After the patience it returns the error of f.
func (r *run) eventually(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		if gone := r.weir.ExitError(); gone != nil {
			return gone
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, err)
		}
	}
}

// saveEvery saves n versions with write, one each interval, and waits until each of them
// processes data before it saves the next. It returns when each version was saved.
func (r *run) saveEvery(ctx context.Context, n int, interval time.Duration, write func() error) (map[int]time.Time, error) {
	saved := map[int]time.Time{}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range n {
		r.version++
		saved[r.version] = time.Now()
		if err := write(); err != nil {
			return nil, err
		}
		if err := r.await(ctx); err != nil {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	// The answer to the first push of the last version may not have been recorded yet.
	return saved, r.eventually(ctx, "the last push is answered", func() error {
		r.probe.mu.Lock()
		defer r.probe.mu.Unlock()
		if n := r.probe.first[fmt.Sprint(r.version)]; len(r.probe.pushes) <= n {
			return fmt.Errorf("push %d was not answered", n)
		}
		return nil
	})
}
