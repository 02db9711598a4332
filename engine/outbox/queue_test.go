package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// receiver is the destination of a queue's deliveries.
type receiver struct {
	mu     sync.Mutex
	answer func(shard int, o *outbox.Offer) outbox.Outcome // nil: delivered
	offers []string                                        // shard: records
	ids    []string
	panics bool
}

func (r *receiver) deliver(_ context.Context, shard int, o *outbox.Offer) outbox.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := ""
	if o.Logs != nil {
		text = string(batch.AppendLogsText(nil, o.Logs))
	} else {
		text = string(batch.AppendText(nil, o.Metrics))
	}
	r.offers = append(r.offers, fmt.Sprintf("%d: %s", shard, strings.ReplaceAll(strings.TrimSpace(text), "\n", " | ")))
	r.ids = append(r.ids, o.ID)
	if r.panics {
		panic("a bug")
	}
	if r.answer == nil {
		return outbox.Outcome{}
	}
	return r.answer(shard, o)
}

func (r *receiver) set(answer func(int, *outbox.Offer) outbox.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// takeOffered returns the offers since the last call.
func (r *receiver) takeOffered() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.offers
	r.offers = nil
	return got
}

func retry(_ int, o *outbox.Offer) outbox.Outcome { return outbox.Retry(o, 0) }

// harness is a queue in a synctest bubble.
type harness struct {
	t    *testing.T
	dir  string
	q    *outbox.Queue
	r    *receiver
	logs bytes.Buffer
	gens uint64
}

func inLab(t *testing.T, test func(t *testing.T, l *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &harness{t: t, dir: t.TempDir(), r: &receiver{}}
		l.open()
		test(t, l)
	})
}

// open creates a queue as a new process does.
func (l *harness) open() {
	l.q = outbox.NewQueue(outbox.QueueOptions{Root: l.dir, Clock: clock.System{}, Logger: slog.New(slog.NewTextHandler(&l.logs, nil)), Reasons: []string{"rejected"}, Changed: func() {}})
}

func settings() outbox.QueueSettings {
	return outbox.QueueSettings{Owner: journal.Owner{Endpoint: "sink", Node: "a.b.default"}, MaxRecords: 100, MaxBytes: 1 << 20, InFlight: 4}
}

// run begins a session. stop ends it, and returns the error of Send.
func (l *harness) run(s outbox.QueueSettings) (stop func(replaced bool) error) {
	l.gens++
	session := l.q.Begin(l.gens, s)
	life, end := context.WithCancel(context.Background())
	keep, endKeep := context.WithCancel(context.Background())
	var keeper, sender sync.WaitGroup
	how := outbox.Stop{Grace: 3 * time.Second}
	var failed error
	keeper.Go(func() { session.Keep(keep) })
	sender.Go(func() { failed = session.Send(life, l.r.deliver, func() outbox.Stop { return how }) })
	return func(replaced bool) error {
		how.Replaced = replaced
		end()
		sender.Wait()
		endKeep()
		keeper.Wait()
		session.End()
		return failed
	}
}

func (l *harness) accept(b outbox.Batch) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // the bubble's
	defer cancel()
	if err := l.q.Accept(ctx, nil, b); err != nil {
		l.t.Fatal(err)
	}
}

func samples(t *testing.T, source uint64, text string) outbox.Batch {
	t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return outbox.Batch{Metrics: b}
}

func pass(d time.Duration) {
	time.Sleep(d) // the bubble's
	synctest.Wait()
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The next instance continues the offers in flight: attempts, IDs, order.
func TestSessionsHandOn(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.set(retry)
		stop := l.run(settings())
		l.accept(samples(t, 1, "a 1 1\n"))
		pass(0)
		next := l.run(settings())
		l.accept(samples(t, 1, "a 2 2\n"))
		pass(0)
		equal(t, l.r.takeOffered(), []string{"1: a 1 1"})
		l.r.set(nil)
		if err := stop(true); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		equal(t, l.r.takeOffered(), []string{"1: a 1 1", "1: a 2 2"})
		equal(t, l.r.ids[1], l.r.ids[0])
		if l.r.ids[2] == l.r.ids[0] {
			t.Error("two offers have one name")
		}
		next(false)
		equal(t, l.q.Stats().Sent, int64(2))
		equal(t, l.q.Stats().Retried, int64(1))
	})
}

// Records that change shards wait for earlier records.
func TestAnotherSplitKeepsTheOrder(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.set(retry)
		stop := l.run(settings())
		l.accept(samples(t, 1, `a{k="x"} 1 1`+"\n"+`a{k="y"} 1 1`+"\n"))
		pass(0)
		by := settings()
		by.Split.By = []string{"k"}
		next := l.run(by)
		stop(true)
		l.accept(samples(t, 1, `a{k="x"} 2 2`+"\n"+`a{k="y"} 2 2`+"\n"))
		pass(time.Minute)
		for _, o := range l.r.takeOffered() {
			equal(t, o, `1: a{k="x"} 1 1 | a{k="y"} 1 1`)
		}
		l.r.set(nil)
		pass(time.Minute)
		got := l.r.takeOffered()
		if len(got) < 2 || got[0] != `1: a{k="x"} 1 1 | a{k="y"} 1 1` || strings.Contains(strings.Join(got[1:], ""), " 1 1") {
			t.Errorf("got %q", got)
		}
		next(false)
	})
}

// The rows left of an offer are offered under a new ID. Lost records are
// counted.
func TestPartOfAnOffer(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.set(func(int, *outbox.Offer) outbox.Outcome {
			l.r.answer = nil
			return outbox.Outcome{Left: []int{1}, Lost: map[string]int{"rejected": 1}, After: time.Second}
		})
		stop := l.run(settings())
		l.accept(samples(t, 1, "a 1 1\nb 1 1\nc 1 1\n"))
		pass(2 * time.Second)
		equal(t, l.r.takeOffered(), []string{"1: a 1 1 | b 1 1 | c 1 1", "1: b 1 1"})
		if l.r.ids[0] == l.r.ids[1] {
			t.Error("other records have the same name")
		}
		stop(false)
		st := l.q.Stats()
		equal(t, st.Sent, int64(2))
		equal(t, st.Lost["rejected"], int64(1))
	})
}

// New limits create a new offer, because the old one may be too large.
func TestOtherBounds(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.set(retry)
		stop := l.run(settings())
		l.accept(samples(t, 1, "a 1 1\nb 1 1\nc 1 1\n"))
		pass(0)
		small := settings()
		small.MaxRecords = 2
		next := l.run(small)
		l.r.set(nil)
		stop(true)
		pass(time.Second)
		equal(t, l.r.takeOffered(), []string{"1: a 1 1 | b 1 1 | c 1 1", "1: a 1 1 | b 1 1", "1: c 1 1"})
		next(false)
	})
}

// A panic ends Send. The offer in flight is kept.
func TestPanic(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.panics = true
		stop := l.run(settings())
		l.accept(samples(t, 1, "a 1 1\n"))
		pass(time.Second)
		if err := stop(false); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("got %v", err)
		}
		l.r.panics = false
		stop = l.run(settings())
		pass(time.Second)
		equal(t, l.r.takeOffered(), []string{"1: a 1 1", "1: a 1 1"})
		stop(false)
	})
}

// A full journal blocks its sources until there is room or the sink stops.
func TestFull(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.set(retry)
		s := settings()
		s.Limits.MaxSize = 1 << 20
		stop := l.run(s)
		var held error
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			r := rand.New(rand.NewPCG(1, 1))
			for i := 0; held == nil; i++ {
				var text strings.Builder // that cannot be compressed
				for range 4000 {
					fmt.Fprintf(&text, "%x", r.Uint64())
				}
				held = l.q.Accept(context.Background(), stopped, samples(t, 1, fmt.Sprintf("a{x=%q} %d 1\n", text.String(), i)))
			}
		}()
		pass(time.Minute)
		select {
		case <-done:
			t.Fatalf("it ended with %v", held)
		default:
		}
		close(stopped)
		<-done
		if !errors.Is(held, outbox.ErrStopped) {
			t.Errorf("got %v", held)
		}
		l.r.set(nil)
		pass(time.Minute)
		l.accept(samples(t, 1, "b 1 1\n"))
		pass(time.Second)
		stop(false)
		equal(t, l.q.Stats().Journal.Blocks, int64(0))
	})
}

// Damaged blocks are lost and counted. The rest is delivered.
func TestDamage(t *testing.T) {
	inLab(t, func(t *testing.T, l *harness) {
		l.r.set(retry)
		stop := l.run(settings())
		for i := range 3 {
			l.accept(samples(t, 1, fmt.Sprintf("a %d %d\n", i, i)))
		}
		stop(false)
		segs, err := filepath.Glob(filepath.Join(l.dir, "*", "*.seg"))
		if err != nil || len(segs) != 1 {
			t.Fatalf("got %v, %v", segs, err)
		}
		content, err := os.ReadFile(segs[0])
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/2] ^= 0xff
		if err := os.WriteFile(segs[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		l.open()
		l.r.takeOffered()
		l.r.set(nil)
		stop = l.run(settings())
		pass(time.Minute)
		stop(false)
		equal(t, l.r.takeOffered(), []string{"1: a 0 0 | a 2 2"})
		st := l.q.Stats()
		if st.Sent != 2 || st.Lost["corrupt"] != 1 && st.Journal.SkippedBytes == 0 {
			t.Errorf("got %+v", st)
		}
	})
}
