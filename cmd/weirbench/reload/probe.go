package reload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// probeName is the series of the probe. Its value is the number of the push, and the
// version that processed the push writes itself into the label "version".
const probeName = "weirbench_probe"

// pace is the time between the answer to a push and the next push.
const pace = time.Millisecond

// push is one request of the probe.
type push struct{ sent, answered time.Time }

// probe pushes one sample after the other to weir and receives them again. So it knows
// when each version began to process data, whatever the delays behind the script are, and
// how long a sender waited for each answer.
type probe struct {
	listener net.Listener
	client   *http.Client

	mu      sync.Mutex
	pushes  []push
	first   map[string]int // by version: the lowest number that it processed
	arrived chan struct{}  // closed and replaced when a version arrives for the first time
}

func newProbe() (*probe, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the probe: %w", err)
	}
	return &probe{listener: l, client: &http.Client{Timeout: time.Minute}, first: map[string]int{}, arrived: make(chan struct{})}, nil
}

// serve receives samples until ctx ends.
func (p *probe) serve(ctx context.Context) error {
	server := &http.Server{Handler: p}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot receive the samples of the probe: %w", err)
	}
	return nil
}

// ServeHTTP takes a write request of remote write 1.0.
func (p *probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request prompb.WriteRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = s2.Decode(nil, body)
	}
	if err == nil {
		err = request.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ts := range request.Timeseries {
		i := slices.IndexFunc(ts.Labels, func(l prompb.Label) bool { return l.Name == "version" })
		for _, s := range ts.Samples {
			if i >= 0 && !value.IsStaleNaN(s.Value) {
				p.record(ts.Labels[i].Value, int(s.Value))
			}
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// record notes that a version processed push n. The caller holds p.mu.
func (p *probe) record(version string, n int) {
	first, ok := p.first[version]
	if !ok {
		close(p.arrived)
		p.arrived = make(chan struct{})
	}
	if !ok || n < first {
		p.first[version] = n
	}
}

// run pushes to a URL until ctx ends. A push that is not accepted is an error.
func (p *probe) run(ctx context.Context, url string) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		body, err := sample(n)
		if err != nil {
			return err
		}
		at := push{sent: time.Now()}
		if err := p.send(ctx, url, body); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		at.answered = time.Now()
		p.mu.Lock()
		p.pushes = append(p.pushes, at)
		p.mu.Unlock()
		timer.Reset(pace)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sample returns the body of push n.
func sample(n int) ([]byte, error) {
	request := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: probeName}},
		Samples: []prompb.Sample{{Value: float64(n), Timestamp: time.Now().UnixMilli()}},
	}}}
	raw, err := request.Marshal()
	return s2.EncodeSnappy(nil, raw), err
}

func (p *probe) send(ctx context.Context, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot push: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // the status is the error
		return fmt.Errorf("cannot push: weir answers %s: %s", resp.Status, text)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// await waits until a version has processed a push.
func (p *probe) await(ctx context.Context, version int) error {
	for {
		p.mu.Lock()
		_, ok := p.first[strconv.Itoa(version)]
		arrived := p.arrived
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return fmt.Errorf("cannot see version %d in the data: %w", version, context.Cause(ctx))
		}
	}
}

// swaps is what the probe saw of a series of saves.
type swaps struct {
	serving []time.Duration // from a save to the answer of the first push that the new version processed
	waited  []time.Duration // the longer one of the answer times of the last push before a swap and the first after it
	usual   []time.Duration // the same of two pushes before the save
}

// swaps returns what happened at each save; saved has the times by version. The usual
// answer time is subtracted from the answer times.
func (p *probe) swaps(saved map[int]time.Time) (s swaps) {
	p.mu.Lock()
	defer p.mu.Unlock()
	median := p.median()
	longer := func(n int) time.Duration { // of n and the push before n
		return max(p.pushes[n].took(), p.pushes[n-1].took()) - median
	}
	for version, at := range saved {
		n, ok := p.first[strconv.Itoa(version)]
		before, _ := slices.BinarySearchFunc(p.pushes, at, func(x push, t time.Time) int { return x.answered.Compare(t) })
		if !ok || before < 2 || n >= len(p.pushes) {
			continue
		}
		s.serving = append(s.serving, p.pushes[n].answered.Sub(at))
		s.waited = append(s.waited, longer(n))
		s.usual = append(s.usual, longer(before-1))
	}
	return s
}

func (x push) took() time.Duration { return x.answered.Sub(x.sent) }

// median returns the median answer time. The caller holds p.mu.
func (p *probe) median() time.Duration {
	all := make([]time.Duration, len(p.pushes))
	for i, x := range p.pushes {
		all[i] = x.took()
	}
	return quantile(all, 0.5)
}

// quantile returns the q-quantile of values, which it sorts; 0 if there are none.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
}
