// Package pump reads scrapes from targets and writes them to a sink as fast as
// possible, without the work of a collector: it shows the capacity of the
// benchmark itself. Its samples are always the same, so the sequences of the sink
// have no meaning.
package pump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/prompb"
)

// Options are the settings of a pump.
type Options struct {
	Targets []string // addresses of the targets
	Write   string   // URL of the sink
	Workers int      // at least 1
}

// Run pumps until ctx ends, and returns the number of samples.
func Run(ctx context.Context, o Options) (samples int64, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Workers, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var all atomic.Int64
	errs := make([]error, o.Workers)
	var wg sync.WaitGroup
	for w := range o.Workers {
		wg.Go(func() {
			errs[w] = work(ctx, client, o, w, &all)
		})
	}
	wg.Wait()
	return all.Load(), errors.Join(errs...)
}

// work pumps the targets that are assigned to a worker.
func work(ctx context.Context, client *http.Client, o Options, worker int, samples *atomic.Int64) error {
	writes := map[string][]byte{}
	count := map[string]int64{}
	var buf bytes.Buffer
	for i := worker; ctx.Err() == nil; i += o.Workers {
		t := o.Targets[i%len(o.Targets)]
		buf.Reset()
		if err := sendRequest(ctx, client, http.MethodGet, "http://"+t+"/metrics", nil, &buf); err != nil {
			return unlessOver(ctx, fmt.Errorf("cannot scrape: %w", err))
		}
		if writes[t] == nil {
			var err error
			if writes[t], count[t], err = request(buf.Bytes(), t); err != nil {
				return fmt.Errorf("cannot write what %s shows: %w", t, err)
			}
		}
		if err := sendRequest(ctx, client, http.MethodPost, o.Write, writes[t], &buf); err != nil {
			return unlessOver(ctx, fmt.Errorf("cannot write: %w", err))
		}
		samples.Add(count[t])
	}
	return nil
}

func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func sendRequest(ctx context.Context, client *http.Client, method, url string, body []byte, into *bytes.Buffer) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	into.Reset()
	_, err = io.Copy(into, resp.Body)
	return err
}

// request converts a body to a compressed write request of remote write 1.0.
func request(body []byte, instance string) (_ []byte, samples int64, err error) {
	w := &prompb.WriteRequest{}
	p := textparse.NewPromParser(append(bytes.Clone(body), 0)[:len(body)], labels.NewSymbolTable(), false)
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if e != textparse.EntrySeries {
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		_, _, v := p.Series()
		b := labels.NewBuilder(ls)
		for name, value := range map[string]string{
			"instance": instance, "job": "bench", "cluster": "eu-central-1", "namespace": "team-1", "pod": "orders-7d9fc6b5c8-00001",
		} {
			b.Set(name, value)
		}
		w.Timeseries = append(w.Timeseries, prompb.TimeSeries{Labels: prompb.FromLabels(b.Labels(), nil), Samples: []prompb.Sample{{Value: v, Timestamp: 1.7e12}}})
	}
	raw, err := w.Marshal()
	if err != nil {
		return nil, 0, err
	}
	return s2.EncodeSnappy(nil, raw), int64(len(w.Timeseries)), nil
}
