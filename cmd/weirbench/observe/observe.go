// Package observe measures what it costs a weir under load to be looked at: by a tap, by
// weir top, and by pages of the web UI.
//
// All ways to look are measured in turn, round by round, on one weir, so that other work
// on the machine disturbs them equally. The CPU time is that of the process of weir, as
// the operating system counts it; clients are part of this process and do not count.
package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/process"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
	"github.com/weir-run/weir/engine/control"
)

// Options are the settings of a run. All are required.
type Options struct {
	Weir     string // the program
	Dir      string // for the config and the data
	Targets  int    // scraped every second
	Series   int    // of each target
	Pages    int    // of the web UI
	Nodes    int    // further nodes that get all samples; may be 0
	Rounds   int
	Measure  time.Duration // of each way to look, in each round
	Settle   time.Duration // before each measurement, while streams are opened
	Patience time.Duration // limits each wait
	Out      io.Writer     // receives the table
}

// Validate returns the first mistake in o.
func (o Options) Validate() error {
	if o.Targets < 1 || o.Series < 10 || o.Pages < 1 || o.Nodes < 0 || o.Rounds < 1 || o.Measure < time.Second || o.Settle <= 0 || o.Patience <= 0 {
		return fmt.Errorf("cannot measure observers with these settings: give at least 1 target, page and round, 10 series, 1s of measuring and some time to settle")
	}
	return nil
}

// node is the node that changes each sample, and is looked at.
const node = "expr.set.mark"

const config = `prometheus.scrape "load" {
  targets         = [%s]
  scrape_interval = "1s"
  scrape_timeout  = "1s"
  forward_to      = [%s` + node + `.receiver]
}

expr.set "mark" {
  label "observed" {
    value = "'yes'"
  }

  forward_to = [prometheus.remote_write.sink.receiver]
}

prometheus.remote_write "sink" {
  endpoint {
    url = "http://%s/api/v1/write"
  }
}
`

// further is one of the further nodes.
const further = `
prometheus.relabel "further_%d" {
  forward_to = []
}
`

// observer is a way to look at weir.
type observer struct {
	name string
	look func(ctx context.Context, r *run, report func(error))
	cost []float64 // of each round, in cores
}

type run struct {
	o      Options
	weir   *process.Process
	client *http.Client // of the control socket
}

// Run measures all ways to look and prints a table. It returns an error if a client did
// not get what it requested.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	sinks, err := sink.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	targets, err := target.Listen(target.Options{Targets: o.Targets, Series: o.Series, Sequences: 1, Format: target.Text, Gzip: target.GzipOff, Interval: time.Second})
	if err != nil {
		return err
	}
	serving.Go(func() { _ = sinks.Serve(ctx) })
	serving.Go(func() { _ = targets.Serve(ctx) })
	var addresses strings.Builder
	for _, a := range targets.Addresses() {
		fmt.Fprintf(&addresses, "{ __address__ = %q }, ", a)
	}
	var receivers, nodes strings.Builder
	for i := range o.Nodes {
		fmt.Fprintf(&receivers, "prometheus.relabel.further_%d.receiver, ", i)
		fmt.Fprintf(&nodes, further, i)
	}
	file := filepath.Join(o.Dir, "config.alloy")
	if err := os.WriteFile(file, fmt.Appendf(nil, config+"%s", &addresses, &receivers, sinks.Address(), &nodes), 0o666); err != nil {
		return fmt.Errorf("cannot write the config: %w", err)
	}
	data := filepath.Join(o.Dir, "data")
	r := &run{o: o, client: control.Client(data)}
	connections := r.client.Transport.(*http.Transport)
	connections.DisableKeepAlives, connections.MaxIdleConnsPerHost = false, o.Pages // as browsers do
	defer r.client.CloseIdleConnections()
	if r.weir, err = process.Start(o.Weir, "run", "--server.http.listen-addr=127.0.0.1:0", "--storage.path="+data, file); err != nil {
		return err
	}
	defer r.weir.Kill()
	if err := r.loaded(ctx, sinks); err != nil {
		return err
	}
	observers := []*observer{
		{name: "nobody", look: func(context.Context, *run, func(error)) {}},
		{name: "`weir tap " + node + ":out`", look: stream("/api/v0/tap/" + node + "?side=out")},
		{name: "`weir tap " + node + ":diff`", look: stream("/api/v0/tap/" + node + "?side=diff")},
		{name: "`weir top`", look: stream("/api/v0/top")},
		{name: fmt.Sprintf("%d pages", o.Pages), look: pages},
	}
	for range o.Rounds {
		for _, w := range observers {
			if err := r.measure(ctx, w); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	fmt.Fprintf(o.Out, "CPU time of weir at %d samples/s, in %% of one core: median of %d rounds of %s, in turn.\n\n| Observer | median | more than nobody | all rounds |\n|---|--:|--:|---|\n",
		o.Targets*o.Series, o.Rounds, o.Measure)
	itself := func(cost float64) float64 { return cost }
	for _, w := range observers {
		rounds := make([]string, len(w.cost))
		for i, c := range w.cost {
			rounds[i] = fmt.Sprintf("%.2f", 100*c)
		}
		fmt.Fprintf(o.Out, "| %s | %.2f | %+.2f | %s |\n", w.name, 100*bench.Median(w.cost, itself), 100*(bench.Median(w.cost, itself)-bench.Median(observers[0].cost, itself)), strings.Join(rounds, ", "))
	}
	late := targets.Stats().Late
	fmt.Fprintf(o.Out, "\n%d scrapes were late.\n", late)
	return nil
}

// loaded waits until as many samples arrive as the targets have.
func (r *run) loaded(ctx context.Context, s *sink.Server) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		arrived := s.Stats(false).Samples
		if arrived >= int64(r.o.Targets*r.o.Series) && r.weir.URL() != "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.weir.Done():
			return fmt.Errorf("weir has ended: %s", r.weir.OutputTail())
		case <-ctx.Done():
			return fmt.Errorf("%d samples of %d targets arrived within %s; weir printed: %s", arrived, r.o.Targets, r.o.Patience, r.weir.OutputTail())
		}
	}
}

// measure measures an observer once.
func (r *run) measure(ctx context.Context, w *observer) error {
	looking, stop := context.WithCancelCause(ctx)
	var clients sync.WaitGroup
	clients.Go(func() { w.look(looking, r, func(err error) { stop(err) }) })
	defer clients.Wait()
	defer stop(nil)
	if err := sleep(looking, r.o.Settle); err != nil {
		return err
	}
	before, err := r.cpu(looking)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := sleep(looking, r.o.Measure); err != nil {
		return err
	}
	after, err := r.cpu(looking)
	if err != nil {
		return err
	}
	w.cost = append(w.cost, (after-before)/time.Since(began).Seconds())
	return nil
}

// cpu returns the CPU time that weir has used, in seconds.
func (r *run) cpu(ctx context.Context) (float64, error) {
	families, err := r.weir.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return process.Sum(families, "process_cpu_seconds_total", "")
}

// stream returns an observer that reads a response until it is stopped.
func stream(path string) func(context.Context, *run, func(error)) {
	return func(ctx context.Context, r *run, report func(error)) {
		n, err := r.read(ctx, path)
		if ctx.Err() == nil {
			report(fmt.Errorf("the response ended after %d bytes: %w", n, err))
		}
	}
}

// pages does what pages of the overview do: each reads the status once and follows its
// changes, and reads the history, and then every ten seconds what was added to it.
func pages(ctx context.Context, r *run, report func(error)) {
	var all sync.WaitGroup
	follow := func(path string) {
		if _, err := r.read(ctx, path); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
	for i := range r.o.Pages {
		const period = 10 * time.Second
		all.Go(func() {
			follow("/api/v0/status")
			follow("/api/v0/events")
			if ctx.Err() == nil {
				report(errors.New("the events of the status ended"))
			}
		})
		all.Go(func() {
			follow("/api/v0/history")
			for wait := time.Duration(i) * period / time.Duration(r.o.Pages); sleep(ctx, wait) == nil; wait = period {
				follow(fmt.Sprintf("/api/v0/history?since=%d", time.Now().Add(-period).Unix()))
			}
		})
	}
	all.Wait()
}

// read requests a path and reads the response to its end.
func (r *run) read(ctx context.Context, path string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, control.URL(path), nil)
	if err != nil {
		return 0, err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: status %d", path, res.StatusCode)
	}
	return io.Copy(io.Discard, res.Body)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
