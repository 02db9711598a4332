package faults

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/sink"
)

// The slow endpoint takes slowLatency for each answer. weir may send slowShards
// requests at a time, of so many samples that a third of the load can be sent. A
// backlog of slowRounds times as much as is in flight is to be drained.
const (
	slowLatency = 1500 * time.Millisecond
	slowShards  = 2
	slowRounds  = 12
)

// slowSamples returns max_samples_per_send for the slow endpoint.
func (r *run) slowSamples() int {
	load := float64(r.o.Targets*r.o.Series) / r.o.Interval.Seconds()
	return int(math.Ceil(load / 3 * slowLatency.Seconds() / slowShards))
}

// slowed has every response take a while, until a backlog has formed, and measures
// how fast the backlog drains once the targets rest.
func (r *run) slowed(ctx context.Context) (string, error) {
	each := r.slowSamples()
	if err := r.configure(ctx, fmt.Sprintf("max_samples_per_send = %d\n      min_shards = 1\n      max_shards = %d", each, slowShards)); err != nil {
		return "", err
	}
	r.setFault(&sink.Fault{Delay: sink.Duration(slowLatency)})
	inFlight := float64(slowShards * each)
	var waiting float64
	pending := func() (err error) {
		waiting, err = r.metric(ctx, "weir_remote_write_samples_pending", "")
		return err
	}
	if err := r.eventually(ctx, "a backlog forms", func() error {
		if err := pending(); err != nil {
			return err
		}
		if waiting < slowRounds*inFlight {
			return fmt.Errorf("%.0f samples are waiting, not %.0f", waiting, slowRounds*inFlight)
		}
		return nil
	}); err != nil {
		return "", err
	}
	r.freeze(true)
	if err := r.refused(ctx, 1); err != nil {
		return "", err
	}
	backlog := waiting
	var m drainage
	if err := r.eventually(ctx, "the backlog drains", func() error {
		if err := pending(); err != nil {
			return err
		}
		st := r.sink.Stats(false)
		m.recordCount(time.Now(), st.Samples+st.Report+st.Stale)
		if waiting < inFlight {
			return nil
		}
		return fmt.Errorf("%.0f samples are waiting", waiting)
	}); err != nil {
		return "", err
	}
	r.setFault(nil)
	r.freeze(false)
	if err := r.configure(ctx, ""); err != nil {
		return "", err
	}
	possible := inFlight / slowLatency.Seconds()
	what := fmt.Sprintf("a backlog of %.0f samples drained at %.0f/s, %.0f %% of the %.0f/s that the endpoint can take", backlog, m.rate(), 100*m.rate()/possible, possible)
	r.drains = append(r.drains, what)
	if m.rate() < r.o.MinDrain*possible {
		r.addFailure("%s, not %.0f %%", what, 100*r.o.MinDrain)
	}
	return what, nil
}

// configure writes another config, with a queue_config if it is not "", and starts
// weir again: an empty journal then gets as many shards as requests may be in
// flight.
func (r *run) configure(ctx context.Context, queue string) error {
	if err := r.drained(ctx); err != nil {
		return err
	}
	r.queue = queue
	if err := r.writeConfig(); err != nil {
		return err
	}
	r.stop(false)
	if _, err := r.inspectDead(true); err != nil {
		return err
	}
	return r.start(ctx)
}

// drainage is how many samples had arrived when.
type drainage struct {
	began, ended time.Time // when the number first and last rose
	first, last  int64
}

// recordCount notes the number. Samples arrive a request at a time, so the rate counts
// from one rise to another.
func (d *drainage) recordCount(at time.Time, n int64) {
	switch {
	case d.last == 0:
		d.last = n
	case n > d.last:
		if d.began.IsZero() {
			d.began, d.first = at, n
		}
		d.ended, d.last = at, n
	}
}

// rate returns the samples per second, 0 if there were fewer than two rises.
func (d *drainage) rate() float64 {
	if !d.ended.After(d.began) {
		return 0
	}
	return float64(d.last-d.first) / d.ended.Sub(d.began).Seconds()
}
