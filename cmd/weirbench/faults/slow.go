package faults

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/sink"
)

// The slow endpoint takes slowLatency for each response. weir may send slowShards
// concurrent requests. Their size is chosen so that a third of the load can be
// sent. The backlog to be drained is slowRounds times the data in flight.
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

// slowed delays every response until a backlog has formed, and measures how fast
// the backlog drains while the targets are frozen.
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

// configure writes another config, with a queue_config if it is not "", and
// restarts weir, so that an empty journal gets as many shards as there may be
// concurrent requests.
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

// drainage is the number of arrived samples over time.
type drainage struct {
	began, ended time.Time // when the number first and last increased
	first, last  int64
}

// recordCount records the number. Samples arrive in whole requests, so the rate
// is measured from one increase to another.
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

// rate returns the samples per second, or 0 if there were fewer than two
// increases.
func (d *drainage) rate() float64 {
	if !d.ended.After(d.began) {
		return 0
	}
	return float64(d.last-d.first) / d.ended.Sub(d.began).Seconds()
}
