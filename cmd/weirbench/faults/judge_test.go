package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

// trial is a run without weir: the test determines which samples were scraped and
// which arrived.
type trial struct {
	*run
	t        *testing.T
	instance string
	out      bytes.Buffer
}

// newTrial returns a trial with a target that has two series and was scraped n
// times.
func newTrial(t *testing.T, n int) *trial {
	t.Helper()
	r := &trial{t: t}
	r.run = &run{o: Options{Targets: 1, Series: 2, Out: &r.out, Dir: t.TempDir()}}
	var err error
	if r.targets, err = target.Listen(target.Options{Targets: 1, Series: 2, Sequences: 2, Format: target.Text, Gzip: target.GzipOff}); err != nil {
		t.Fatal(err)
	}
	if r.sink, err = sink.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool, 2)
	ctx := t.Context() // ends before the cleanups
	go func() { r.targets.Serve(ctx); done <- true }()
	go func() { r.sink.Serve(ctx); done <- true }()
	t.Cleanup(func() { <-done; <-done })
	r.instance = r.targets.Addresses()[0]
	for range n {
		resp, err := http.Get("http://" + r.instance + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	return r
}

// body returns a request with these numbers of the target's series, alternately
// of the first and the second.
func (r *trial) body(numbers ...int) []byte { return r.bodyAt(0, numbers...) }

// bodyAt is body with a timestamp.
func (r *trial) bodyAt(ms int64, numbers ...int) []byte {
	var req prompb.WriteRequest
	for i, n := range numbers {
		req.Timeseries = append(req.Timeseries, r.series(fmt.Sprintf("%s%d_total", target.SequencePrefix, i%2), float64(target.SequenceBase+n), ms))
	}
	b, err := req.Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	return snappy.Encode(nil, b)
}

func (r *trial) series(name string, v float64, ms int64) prompb.TimeSeries {
	return prompb.TimeSeries{
		Labels:  []prompb.Label{{Name: "__name__", Value: name}, {Name: "instance", Value: r.instance}},
		Samples: []prompb.Sample{{Value: v, Timestamp: ms}},
	}
}

func (r *trial) arrives(body []byte) {
	r.t.Helper()
	req := httptest.NewRequest("POST", "/api/v1/write", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/x-protobuf")
	w := httptest.NewRecorder()
	if r.sink.Handler().ServeHTTP(w, req); w.Code != 204 {
		r.t.Fatalf("the sink answers %d", w.Code)
	}
}

// fails records a failed scrape at a time.
func (r *trial) fails(ms int64) {
	r.t.Helper()
	b, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{r.series("up", 0, ms)}}).Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	r.arrives(snappy.Encode(nil, b))
}

// TestJudge distinguishes samples that may be missing from lost ones.
func TestJudge(t *testing.T) {
	f := func(name string, lost int, finding string, do func(r *trial)) {
		t.Run(name, func(t *testing.T) {
			r := newTrial(t, 4)
			do(r)
			err := r.checkAll()
			if got := errors.Is(err, ErrLost); got != (finding != "") {
				t.Errorf("judge returns %v", err)
			}
			out := r.out.String()
			if !strings.HasSuffix(out, fmt.Sprintf("\nlost = %d\n", lost)) || !strings.Contains(out, finding) || finding == "" && strings.Contains(out, "WRONG") {
				t.Errorf("want lost = %d and %q, got:\n%s", lost, finding, out)
			}
		})
	}
	all := func(r *trial, numbers ...int) {
		for _, n := range numbers {
			r.arrives(r.body(n, n))
		}
	}
	dropped := func(r *trial) string {
		return `ts=1 level=warn msg="batch was dropped" target=http://` + r.instance + "/metrics samples=7\n"
	}

	f("everything arrives", 0, "", func(r *trial) { all(r, 1, 2, 3, 4) })
	f("and again in the same bytes", 0, "", func(r *trial) { all(r, 1, 2, 3, 4, 3, 4) })
	f("a hole", 2, "scrapes [3]", func(r *trial) { all(r, 1, 2, 4) })
	f("the first is missing", 2, "scrapes [1]", func(r *trial) { all(r, 2, 3, 4) })
	f("the last is missing", 2, "scrapes [4]", func(r *trial) { all(r, 1, 2, 3) })
	f("part of a scrape", 1, "scrape 3 of", func(r *trial) { all(r, 1, 2); r.arrives(r.body(3)); all(r, 4) })
	f("a series never came", 1, "1 sequences arrived, there are 2", func(r *trial) {
		for n := range 4 {
			r.arrives(r.body(n + 1))
		}
	})
	f("again in another request", 0, "", func(r *trial) { all(r, 1, 2, 3, 4); r.arrives(r.body(3, 3, 4, 4)) })
	f("again with another timestamp", 0, "3 numbers came again with other timestamps", func(r *trial) { all(r, 1, 2, 3, 4); r.arrives(r.bodyAt(7, 3, 3, 3)) })
	f("late", 0, "2 numbers came late", func(r *trial) { all(r, 1, 3, 2, 4) })

	// Deaths.
	f("a death met it", 0, "", func(r *trial) { all(r, 1, 2, 4); r.deaths = []map[string]int{{r.instance: 3}} })
	f("a death met the one after", 0, "", func(r *trial) { all(r, 1, 2, 4); r.deaths = []map[string]int{{r.instance: 2}} })
	f("a death meets one only", 2, "scrapes [3]", func(r *trial) { all(r, 1, 4); r.deaths = []map[string]int{{r.instance: 2}} })
	f("a death before", 2, "scrapes [3]", func(r *trial) { all(r, 1, 2, 4); r.deaths = []map[string]int{{r.instance: 1}} })
	f("two deaths", 0, "", func(r *trial) { all(r, 1, 4); r.deaths = []map[string]int{{r.instance: 2}, {r.instance: 3}} })

	// Reports by weir.
	f("refused", 0, "", func(r *trial) { all(r, 1, 2, 4); r.output = []string{dropped(r)} })
	f("refused once", 4, "weir refused 1 batches", func(r *trial) { all(r, 1, 4); r.output = []string{dropped(r)} })
	f("another one was refused", 2, "weir refused 0 batches", func(r *trial) {
		all(r, 1, 2, 4)
		r.output = []string{strings.ReplaceAll(dropped(r), r.instance, "127.0.0.1:1")}
	})
	f("failed", 0, "", func(r *trial) { all(r, 1, 2, 4); r.fails(5000) })
	f("failed at rest", 2, "failed 0 scrapes", func(r *trial) { all(r, 1, 2, 4); r.fails(5000); r.rest = []span{{4000, 6000}} })

	// Content of the journal.
	owe := func(r *trial, n int) {
		if _, _, err := r.sink.Owe(r.body(n, n), false); err != nil {
			r.t.Fatal(err)
		}
	}
	f("owed and paid", 0, "", func(r *trial) { owe(r, 3); all(r, 1, 2, 3, 4) })
	f("owed, though a death met it", 2, "2 samples were in the journal", func(r *trial) {
		owe(r, 3)
		all(r, 1, 2, 4)
		r.deaths = []map[string]int{{r.instance: 3}}
	})
	f("forgiven", 0, "", func(r *trial) {
		owe(r, 3)
		all(r, 1, 2, 4)
		if _, err := r.sink.Forgive(r.body(3, 3), false); err != nil {
			r.t.Fatal(err)
		}
	})
	f("forgiven in part", 1, "scrapes [3] of", func(r *trial) {
		r.arrives(r.body(1, 1))
		r.arrives(r.body(2, 2))
		r.arrives(r.body(4, 4))
		if _, err := r.sink.Forgive(r.body(3), false); err != nil {
			r.t.Fatal(err)
		}
	})
}

// written writes a journal of a dead process, with two segments.
func (r *trial) written(bodies ...[]byte) (dir string) {
	r.t.Helper()
	dir = filepath.Join(r.data(), "journal", "name-sink")
	for _, half := range [][][]byte{bodies[:len(bodies)/2], bodies[len(bodies)/2:]} {
		j, err := journal.Open(dir, journal.Options{Shards: 2, Clock: clock.System{}, Logger: discard})
		if err != nil {
			r.t.Fatal(err)
		}
		for i, b := range half {
			if err := j.Append(journal.Block{Shard: i % 2, Kind: 1, Samples: 2, Payload: b}); err != nil {
				r.t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	return dir
}

func TestNoSuchFault(t *testing.T) {
	r := &run{o: Options{Only: "flood", Steps: 1}}
	err := r.faults(t.Context())
	if err == nil || !strings.Contains(err.Error(), `no fault has "flood" in its name; there are: kill -9; kill -9, endpoint dead; `) {
		t.Errorf("got %v", err)
	}
}

func TestDied(t *testing.T) {
	r := newTrial(t, 4)
	r.written(r.body(1, 1), r.body(2, 2), r.body(3, 3))
	r.arrives(r.body(1, 1))
	got, err := r.inspectDead(true)
	if err != nil {
		t.Fatal(err)
	}
	if want := (found{blocks: 3, samples: 6, arrived: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := r.sink.Prove(nil).Owed; n != 4 {
		t.Errorf("%d samples have not arrived, want 4", n)
	}
	if d := cmp.Diff([]map[string]int{{r.instance: 4}}, r.deaths); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if len(r.problems) > 0 {
		t.Error(r.problems)
	}
}

// TestFlip checks that weir's journal detects the flipped bits.
func TestFlip(t *testing.T) {
	for seed := range uint64(30) {
		r := newTrial(t, 0)
		r.rng = newRand(seed)
		var bodies [][]byte
		for n := range 12 {
			bodies = append(bodies, r.body(n+1, n+1))
		}
		dir := r.written(bodies...)
		d, err := r.flip()
		if err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(dir, journal.Options{Shards: 2, Clock: clock.System{}, Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		came, shards := 0, j.Shards()
		for j.Stats().Blocks > 0 {
			for shard := range shards {
				for b, ok := next(j, shard); ok; b, ok = next(j, shard) {
					if !slices.ContainsFunc(bodies, func(x []byte) bool { return bytes.Equal(x, b.Payload) }) {
						t.Fatalf("seed %d: block %d has other bytes", seed, b.Seq)
					}
					j.Ack(b)
					came++
				}
			}
		}
		st := j.Stats()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if d.blocks < 2 || st.DroppedBlocks["corrupt"] != int64(d.blocks) || st.DroppedSamples["corrupt"] != int64(d.samples) || came != 12-d.blocks {
			t.Errorf("seed %d: %+v were damaged, %d came, and the journal says %+v", seed, d, came, st)
		}
		if kept, _ := filepath.Glob(filepath.Join(dir, "*.damaged")); len(kept) != 2 {
			t.Errorf("seed %d: kept %q", seed, kept)
		}
	}
}

func TestFill(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	if err := fill("/dev/full"); err != nil {
		t.Error(err)
	}
}

var discard = slog.New(slog.DiscardHandler)

// next returns the next block of the shard, if there is one now.
func next(j *journal.Journal, shard int) (journal.Block, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a shard can be emptied after its context has ended
	b, err := j.Next(ctx, shard, nil)
	return b, err == nil
}

// TestDrainage measures from one increase to another.
func TestDrainage(t *testing.T) {
	at := time.Unix(0, 0)
	var d drainage
	for i, n := range []int64{100, 100, 150, 150, 250, 350, 350} {
		d.recordCount(at.Add(time.Duration(i)*time.Second), n)
	}
	if got, want := d.rate(), 200.0/3; got != want {
		t.Errorf("got %v samples/s, want %v", got, want)
	}
	if got := new(drainage).rate(); got != 0 {
		t.Errorf("got %v samples/s of nothing", got)
	}
}
