package bench

import (
	"context"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/graph"
)

// Meter contains the resources that a collector has used up to a time.
type Meter struct {
	At   float64 `json:"at"`   // seconds since it was started
	RSS  int64   `json:"rss"`  // resident bytes
	Anon int64   `json:"anon"` // resident bytes that do not belong to a file
	CPU  float64 `json:"cpu"`  // seconds
}

// meters is the approximate number of readings per round.
const meters = 300

// watch adds readings of the collector to to until stop is called.
func (r *round) watch(to *[]Meter) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max((r.s.Warmup+r.s.Measure)/meters, 200*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if u, err := readUsage(r.program.cmd.Process.Pid); err == nil {
					*to = append(*to, Meter{At: now.Sub(r.began).Seconds(), RSS: u.RSS, Anon: u.Anon, CPU: u.CPU})
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// Memory returns the resident memory over time, in MB.
func (r *Round) Memory() graph.Line {
	l := graph.Line{Name: r.Collector}
	for _, m := range r.Over {
		l.Points = append(l.Points, graph.Point{X: m.At, Y: float64(m.RSS) / 1e6})
	}
	return l
}

// Growth compares the memory at the end of the measured time with the memory
// after its first sixth, in MB. Each value is the mean over a tenth of the time.
func (r *Round) Growth() (early, late float64) {
	ps := r.Memory().Points
	if len(ps) < 20 {
		return 0, 0
	}
	mean := func(ps []graph.Point) (sum float64) {
		for _, p := range ps {
			sum += p.Y
		}
		return sum / float64(len(ps))
	}
	n := len(ps)
	return mean(ps[n/6 : n/6+n/10]), mean(ps[n-n/10:])
}
