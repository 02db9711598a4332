package scrape

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/agent"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"google.golang.org/protobuf/proto"
)

// TestZeroSamples compares the samples that weir sends to remote write with those
// of Prometheus's agent, whose storage creates the zero samples. Times are
// relative to the scrape that follows.
func TestZeroSamples(t *testing.T) {
	f := func(name, args string, answers ...func() answer) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			args += "\nstart_timestamp_zero_ingestion = true\nscrape_native_histograms = true"
			live := make([]answer, len(answers))
			for i, answer := range answers {
				live[i].live = answer
			}
			inBubble := func(by func(*testing.T, *world, *Arguments)) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(live)
					by(t, w, decode(t, args))
					w.server.Close()
					synctest.Wait()
				})
			}
			var want, got []string
			dir := t.TempDir()
			inBubble(func(t *testing.T, w *world, a *Arguments) {
				db, err := agent.Open(slog.New(slog.DiscardHandler), nil, nil, dir, &agent.Options{EnableSTAsZeroSample: true})
				if err != nil {
					t.Fatal(err)
				}
				manage(t, w, a, len(answers), db)
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			})
			want = written(t, filepath.Join(dir, "wal"), len(answers))
			inBubble(func(t *testing.T, w *world, a *Arguments) {
				c := new(collector)
				_, stop := runWeir(t, w, a, c)
				time.Sleep(time.Duration(len(answers)+1) * a.ScrapeInterval)
				stop()
				for i, b := range c.batches[:len(answers)] {
					var rows []string
					h := b.Histograms
					for row, s := range b.Series {
						line := formatSample(i, s.PromLabels(), b.T[len(b.T)-1]-b.T[row], b.V[row])
						if len(h) > 0 && h[0].Row == row {
							line = toldHistogram(i, s.PromLabels(), b.T[len(b.T)-1]-b.T[row], h[0].Int, h[0].Float)
							h = h[1:]
						}
						rows = append(rows, line)
					}
					got = append(got, sorted(rows)...)
				}
			})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-Prometheus +weir)\n%s", d)
			}
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, " before:") }) {
				t.Errorf("no zero sample in:\n%s", strings.Join(got, "\n"))
			}
		})
	}
	plain := func() answer { return om("g 1\n") }
	ago := func(d time.Duration) string { return fmt.Sprintf("%.3f", float64(time.Now().Add(-d).UnixMilli())/1000) }
	counter := func(v, created string) answer {
		return om("# TYPE a counter\na_total{x=\"1\"} " + v + "\na_created{x=\"1\"} " + created + "\n# TYPE g gauge\ng 1\n")
	}
	began := ""
	f("a counter begins, goes on and is reset", "",
		plain,
		func() answer { began = ago(10 * time.Second); return counter("5", began) },
		func() answer { return counter("6", began) },
		func() answer { return counter("2", ago(20*time.Second)) })
	f("the target was down meanwhile", "",
		plain,
		func() answer { began = ago(-time.Second); return counter("5", began) }, // the clock of the target is ahead
		func() answer { return counter("6", began) },
		func() answer { return answer{status: 500} },
		func() answer { return counter("1", ago(70*time.Second)) }, // before the marker
		func() answer { return counter("1", ago(5*time.Second)) })
	f("classic histogram and summary", "", plain, func() answer {
		at := ago(time.Second)
		return om("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 9\nh_sum 1\nh_count 9\nh_created " + at +
			"\n# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 1\ns_count 1\ns_created " + at + "\n")
	})
	f("not of gauges", "", plain, func() answer {
		return om("# TYPE g gauge\ng 1\ng_created 5\n# TYPE a counter\na_total 1\na_created " + ago(time.Second) + "\n")
	})
	f("timestamps of their own", "", plain, func() answer {
		return om("# TYPE a counter\na_total 1 " + ago(5*time.Second) + "\na_created " + ago(30*time.Second) +
			"\n# TYPE b counter\nb_total 1 " + ago(5*time.Second) + "\nb_created " + ago(time.Second) + "\n")
	})
	f("native histograms", "", plain, func() answer { return native(t) }, func() answer { return native(t) })
	f("honor_timestamps = false", "honor_timestamps = false", plain, func() answer {
		return om("# TYPE a counter\na_total 1 " + ago(15*time.Second) + "\na_created " + ago(10*time.Second) + "\n")
	})
}

// TestZeroSampleOfATargetThatIsNew: weir does not know which samples another
// process has sent. Therefore, it only adds a zero sample for series that started
// after weir.
func TestZeroSampleOfATargetThatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counter := func(ago time.Duration) func() answer {
			return func() answer {
				return om(fmt.Sprintf("# TYPE a counter\na_total 1\na_created %.3f\n", float64(time.Now().Add(-ago).UnixMilli())/1000))
			}
		}
		w := newWorld([]answer{{live: counter(time.Hour)}, {live: counter(10 * time.Second)}, {live: counter(5 * time.Minute)}, {live: counter(30 * time.Second)}})
		defer func() {
			w.server.Close()
			synctest.Wait()
		}()
		c := new(collector)
		with := decode(t, "start_timestamp_zero_ingestion = true")
		without := decode(t, "start_timestamp_zero_ingestion = true\ntargets = []")
		comp, stop := runWeir(t, w, with, c)
		update := func(a *Arguments, wait time.Duration) {
			t.Helper()
			a.ForwardTo = with.ForwardTo
			if err := comp.Update(a); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
		}
		again := func() *Arguments { return decode(t, "start_timestamp_zero_ingestion = true") }
		time.Sleep(5 * time.Second) // scraped once; the counter started before weir
		update(without, 10*time.Minute)
		update(again(), 5*time.Second) // the counter started while the target was removed
		update(without, 3*time.Minute)
		update(again(), 5*time.Second) // the counter started while the target was still scraped
		update(without, time.Minute)
		update(again(), 5*time.Second)
		stop()
		var zeros []int
		for i, b := range c.batches {
			for row, s := range b.Series {
				if s.Name() == "a_total" && b.T[row] != b.T[len(b.T)-1] {
					zeros = append(zeros, i)
				}
			}
		}
		// The batches between them end the series.
		if d := cmp.Diff([]int{2, 6}, zeros); d != "" {
			t.Errorf("batches with a zero sample (-want +got)\n%s", d)
		}
	})
}

func formatSample(scrape int, ls labels.Labels, before int64, v float64) string {
	text := fmt.Sprintf("%d %s %s", scrape, ls, formatValue(v))
	if strings.Contains(ls.Get("__name__"), "scrape_duration") {
		text = fmt.Sprintf("%d %s", scrape, ls)
	}
	if before != 0 {
		text += fmt.Sprintf(" before: %d", before)
	}
	return text
}

func toldHistogram(scrape int, ls labels.Labels, before int64, h *histogram.Histogram, fh *histogram.FloatHistogram) string {
	var v string
	if h != nil {
		v = fmt.Sprintf(" %v schema %d hint %d", h, h.Schema, h.CounterResetHint)
	} else {
		v = fmt.Sprintf(" %v schema %d hint %d", fh, fh.Schema, fh.CounterResetHint)
	}
	return formatSample(scrape, ls, before, 0) + v
}

// sorted sorts the rows of a scrape, because floats and histograms are separate
// in the WAL. The order of a zero sample and its sample is checked by their
// times.
func sorted(rows []string) []string { slices.Sort(rows); return rows }

// written returns the content of the agent's WAL for the first n scrapes.
func written(t *testing.T, dir string, n int) (out []string) {
	t.Helper()
	segments, err := wlog.NewSegmentsReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer segments.Close()
	type point struct {
		ref    uint64
		t      int64
		format func(scrape int, ls labels.Labels, before int64) string
	}
	series := map[uint64]labels.Labels{}
	var points []point
	d := record.NewDecoder(labels.NewSymbolTable(), slog.New(slog.DiscardHandler))
	r := wlog.NewReader(segments)
	for r.Next() {
		rec := r.Record()
		switch d.Type(rec) {
		case record.Series:
			ss, err := d.Series(rec, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range ss {
				series[uint64(s.Ref)] = s.Labels
			}
		case record.Samples, record.SamplesV2:
			ss, err := d.Samples(rec, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range ss {
				points = append(points, point{uint64(s.Ref), s.T, func(i int, ls labels.Labels, before int64) string { return formatSample(i, ls, before, s.V) }})
			}
		case record.HistogramSamples, record.CustomBucketsHistogramSamples:
			hs, err := d.HistogramSamples(rec, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hs {
				points = append(points, point{uint64(h.Ref), h.T, func(i int, ls labels.Labels, before int64) string {
					return toldHistogram(i, ls, before, h.H, nil)
				}})
			}
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	// The times of the scrapes are those of the report.
	var times []int64
	for _, p := range points {
		if series[p.ref].Get("__name__") == "up" && len(times) < n {
			times = append(times, p.t)
		}
	}
	for i, at := range times {
		var rows []string
		for _, p := range points {
			if p.t <= at && (i == 0 || p.t > times[i-1]) {
				rows = append(rows, p.format(i, series[p.ref], at-p.t))
			}
		}
		out = append(out, sorted(rows)...)
	}
	return out
}

// native is the output of a client library for a histogram that started now.
func native(t *testing.T) answer {
	t.Helper()
	r := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "request_seconds", NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: 0.25})
	r.MustRegister(h)
	h.Observe(3)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	created := families[0].Metric[0].Histogram.CreatedTimestamp
	created.Seconds -= 2
	data, err := proto.Marshal(families[0])
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.Write(binary.AppendUvarint(nil, uint64(len(data))))
	b.Write(data)
	return answer{contentType: protoType, body: b.String()}
}
