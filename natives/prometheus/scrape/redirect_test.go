package scrape_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

func allStale(b *batch.Metrics) bool {
	for _, v := range b.V {
		if !batch.IsStale(v) {
			return false
		}
	}
	return true
}

// TestRedirect: a receiver that is removed sees the series end immediately before
// they arrive on another path. A receiver that stays sees no change.
func TestRedirect(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		stays, after := flowtest.NewSink("stays"), flowtest.NewSink("after")
		a := n.args(t, list(tg))
		a.ForwardTo = append(a.ForwardTo, stays.Receiver())
		c := n.newScrape(t, a)
		send := func(config string, to ...*flow.Receiver) {
			a := n.args(t, config)
			a.ForwardTo = to
			if err := c.Update(a); err != nil {
				t.Fatal(err)
			}
		}
		stop := n.Run(t, c)
		n.wait(t, 3)
		send(list(tg), stays.Receiver(), after.Receiver())
		until(t, n, func() bool { return len(after.Batches()) == 2 })
		got := n.sink.Batches()
		if len(got) != 4 {
			t.Fatalf("%d batches where scrapes went before, want 3 and the markers", len(got))
		}
		diff(t, "markers", []string{"a stale"}, values(got[3]))
		diff(t, "up", "stale", up(got[3]))
		diff(t, "time of the markers", millis(after.Batches()[0])-1, millis(got[3]))

		// Back again, with an interval that would scrape before the markers.
		send(list(tg), stays.Receiver(), n.sink.Receiver())
		until(t, n, func() bool { return len(after.Batches()) == 3 })
		send(strings.Replace(list(tg), "10s", "1s", 1)+"scrape_timeout = \"1s\"\n", stays.Receiver(), n.sink.Receiver())
		until(t, n, func() bool { return len(n.sink.Batches()) == 6 })
		stop()
		if last := after.Batches()[2]; !allStale(last) || millis(last) != millis(n.sink.Batches()[4])-1 {
			t.Errorf("no markers right before the scrape at %d: %v at %d", millis(n.sink.Batches()[4]), values(last), millis(last))
		}
		last := int64(0)
		for i, b := range stays.Batches() {
			if allStale(b) {
				t.Errorf("batch %d of the one that stays: %v", i, values(b))
			}
			if millis(b) <= last {
				t.Errorf("batch %d is not after the previous one", i)
			}
			last = millis(b)
		}
		diff(t, "drops", map[string]uint64{}, n.Stats.Dropped())
	})
}

// TestRedirectWhileFetching: samples that are fetched during a change are sent to
// the new receivers, because the old one may be gone.
func TestRedirectWhileFetching(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		asked, answer := make(chan bool), make(chan bool)
		tg, requests := &target{host: "one:80"}, 0
		n.hosts[tg.host] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests++; requests == 2 {
				close(asked)
				<-answer
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, "a 1\n")
		})
		after := flowtest.NewSink("after")
		c := n.build(t, list(tg))
		stop := n.Run(t, c)
		<-asked
		a := n.args(t, list(tg))
		a.ForwardTo = []*flow.Receiver{after.Receiver()}
		if err := c.Update(a); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the loop has read the change
		close(answer)
		until(t, n, func() bool { return len(after.Batches()) == 1 })
		stop()
		bs := n.sink.Batches()
		if len(bs) != 2 || !allStale(bs[1]) || millis(bs[1]) >= millis(after.Batches()[0]) {
			t.Errorf("%d batches before the change, want one and earlier markers", len(bs))
		}
		diff(t, "after", []string{"a 1"}, values(after.Batches()[0]))
	})
}
