package scrape_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// crowd is a number of targets that count their requests.
type crowd struct {
	mu    sync.Mutex
	asked map[string]int
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked[r.Host]++
	c.mu.Unlock()
	fmt.Fprint(w, "a 1\n")
}

// since returns the number of requests since the last call, for each target,
// sorted by target, and in total.
func (c *crowd) since() (each []int, sum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range len(c.asked) {
		host := fmt.Sprintf("t%d:80", i)
		each = append(each, c.asked[host])
		sum += c.asked[host]
		c.asked[host] = 0
	}
	return each, sum
}

// crowded starts scraping n targets with a clock that stands still.
func crowded(t *testing.T, n *node, count int, interval string) (*crowd, *clocktest.Fake, func()) {
	t.Helper()
	fake := clocktest.New(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	n.clock = fake
	c := &crowd{asked: map[string]int{}}
	var tgs []*target
	for i := range count {
		host := fmt.Sprintf("t%d:80", i)
		n.hosts[host] = c
		c.asked[host] = 0
		tgs = append(tgs, &target{host: host})
	}
	stop := n.Run(t, n.build(t, strings.Replace(list(tgs...), "10s", interval, 1)))
	synctest.Wait()
	return c, fake, stop
}

// pass advances the clock by d in steps. It returns the number of scrapes in each
// step.
func pass(fake *clocktest.Fake, c *crowd, d time.Duration) (steps []int, each []int) {
	const step = 250 * time.Millisecond
	for range d / step {
		fake.Advance(step)
		synctest.Wait()
		asked, sum := c.since()
		steps = append(steps, sum)
		for i, n := range asked {
			if len(each) == i {
				each = append(each, 0)
			}
			each[i] += n
		}
	}
	return steps, each
}

// TestStandstill: after weir was suspended for 20 s, the missed scrapes are not
// made up for. Every target is scraped in its own next slot, so that the normal
// pace resumes immediately without a burst.
func TestStandstill(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		const count = 40
		c, fake, stop := crowded(t, n, count, "10s")
		defer stop()
		once := slices.Repeat([]int{1}, count)
		_, each := pass(fake, c, 20*time.Second)
		diff(t, "scrapes in the first 20s", true, !slices.Contains(each, 0))
		usual, each := pass(fake, c, 10*time.Second)
		diff(t, "scrapes in an interval", once, each)

		fake.Advance(20 * time.Second) // twice the interval, so that the slots are the same
		synctest.Wait()
		if _, sum := c.since(); sum > 0 {
			t.Errorf("%d scrapes at once, want none", sum)
		}
		after, each := pass(fake, c, 10*time.Second)
		diff(t, "scrapes in the interval after", once, each)
		diff(t, "pace", usual, after)
		if got := counter(t, n, "weir_scrape_missed_total"); got != count {
			t.Errorf("%v scrapes are counted as missed, want %d", got, count)
		}
		if got := strings.Count(n.Logs(), "scrapes are left out"); got != 1 {
			t.Errorf("it is logged %d times, want once\n%s", got, n.Logs())
		}
		for _, b := range n.sink.Batches() {
			if up(b) != "1" {
				t.Errorf("up is %s at %d", up(b), millis(b))
			}
		}
	})
}

// TestStandstillOfLongIntervals: missed scrapes of targets with long intervals
// are made up for, but not all at once.
func TestStandstillOfLongIntervals(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		const count = 40
		c, fake, stop := crowded(t, n, count, "5m")
		defer stop()
		pass(fake, c, 5*time.Minute)
		_, each := pass(fake, c, 5*time.Minute)
		diff(t, "scrapes in an interval", slices.Repeat([]int{1}, count), each)

		fake.Advance(5 * time.Minute) // all targets are due
		synctest.Wait()
		if _, sum := c.since(); sum > count/4 {
			t.Errorf("%d scrapes at once of %d", sum, count)
		}
		steps, each := pass(fake, c, 5*time.Minute/2)
		for i, n := range each {
			if n == 0 {
				t.Errorf("target %d was not asked within half an interval", i)
			}
		}
		pass(fake, c, 5*time.Minute/2)
		if most := slices.Max(steps); most > count/4 {
			t.Errorf("%d scrapes of %d in a quarter of a second", most, count)
		}
		if _, sum := pass(fake, c, 5*time.Minute); !slices.Equal(sum, slices.Repeat([]int{1}, count)) {
			t.Errorf("then %v scrapes in an interval, want one each", sum)
		}
	})
}

// TestSlowMachine: a machine that is always late scrapes late, and at least every
// second scrape takes place.
func TestSlowMachine(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		c, fake, stop := crowded(t, n, 1, "10s")
		defer stop()
		pass(fake, c, 20*time.Second)
		asked := 0
		for range 10 {
			fake.Advance(19 * time.Second)
			synctest.Wait()
			_, sum := c.since()
			asked += sum
		}
		if asked < 4 {
			t.Errorf("%d scrapes in 190s", asked)
		}
	})
}

// TestStandstillWhileFetching: a response that arrived while weir was suspended
// is used.
func TestStandstillWhileFetching(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		fake := clocktest.New(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
		n.clock = fake
		asked, answer := make(chan bool), make(chan bool)
		n.hosts["one:80"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked <- true
			<-answer
			fmt.Fprint(w, "a 1\n")
		})
		stop := n.Run(t, n.build(t, list(&target{host: "one:80"})))
		synctest.Wait()
		fake.Advance(time.Second)
		<-asked
		synctest.Wait()
		fake.Advance(20 * time.Second)
		synctest.Wait() // the timeout was checked
		answer <- true
		synctest.Wait()
		diff(t, "up", "1", up(n.wait(t, 1)[0]))

		// Without a response, the scrape fails a second later.
		for again := false; !again; {
			fake.Advance(250 * time.Millisecond)
			synctest.Wait()
			select {
			case again = <-asked:
			default:
			}
		}
		fake.Advance(20 * time.Second)
		synctest.Wait()
		fake.Advance(time.Second)
		synctest.Wait()
		diff(t, "up", "0", up(n.wait(t, 2)[1]))
		answer <- true
		stop()
	})
}

// TestClockLeaps: if the clock is set forward or back, every target is still
// scraped once in each interval.
func TestClockLeaps(t *testing.T) {
	for _, leap := range []time.Duration{time.Hour, -time.Hour, time.Hour + 3*time.Second, -time.Hour - 3*time.Second, 20 * time.Second, -20 * time.Second} {
		t.Run(leap.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				const count = 20
				c, fake, stop := crowded(t, n, count, "10s")
				defer stop()
				pass(fake, c, 20*time.Second)
				fake.Leap(leap)
				synctest.Wait()
				if _, sum := c.since(); sum > 0 {
					t.Errorf("%d scrapes at the leap", sum)
				}
				// Targets that are due are scraped; the next scrape is in the
				// slot of the new time.
				_, each := pass(fake, c, 20*time.Second)
				for i, k := range each {
					if k < 1 || k > 3 {
						t.Errorf("target %d was scraped %d times in two intervals", i, k)
					}
				}
				_, each = pass(fake, c, 10*time.Second)
				diff(t, "scrapes in an interval", slices.Repeat([]int{1}, count), each)
				if got := counter(t, n, "weir_scrape_missed_total"); got != 0 {
					t.Errorf("%v scrapes were missed", got)
				}
				last := n.sink.Batches()[len(n.sink.Batches())-1]
				if ago := fake.Now().UnixMilli() - millis(last); ago < 0 || ago > 10_000 {
					t.Errorf("the last sample is %d ms old", ago)
				}
			})
		})
	}
}

// TestIntervalChangesAfterALeap: if the clock is set back, markers that were sent
// ahead of a scrape may lie an hour in the future. The loop does not wait for
// that hour.
func TestIntervalChangesAfterALeap(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		fake := clocktest.New(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
		n.clock = fake
		tg := n.target("one:80", "a 1\n")
		c := n.build(t, list(tg))
		stop := n.Run(t, c)
		defer stop()
		asked := func() int {
			tg.mu.Lock()
			defer tg.mu.Unlock()
			return len(tg.seen)
		}
		forward := func(d time.Duration) {
			for range d / (250 * time.Millisecond) {
				fake.Advance(250 * time.Millisecond)
				synctest.Wait()
			}
		}
		synctest.Wait()
		forward(20 * time.Second)
		other := flowtest.NewSink("other")
		a := n.args(t, list(tg))
		a.ForwardTo = []*flow.Receiver{other.Receiver()}
		if err := c.Update(a); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // markers were sent to the sink before
		fake.Leap(-time.Hour)
		a = n.args(t, strings.Replace(list(tg), "10s", "5s", 1)+`scrape_timeout = "5s"`)
		a.ForwardTo = []*flow.Receiver{other.Receiver()}
		if err := c.Update(a); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := asked()
		forward(20 * time.Second)
		if got := asked() - before; got != 4 {
			t.Errorf("%d scrapes in 20s with an interval of 5s", got)
		}
	})
}

// counter reads one of the node's counters.
func counter(t *testing.T, n *node, name string) float64 {
	t.Helper()
	families, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
