package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Try is one rate that Ceiling has tried.
type Try struct {
	Rate float64 `json:"rate"`          // samples per second that were due
	Why  string  `json:"why,omitempty"` // it did not hold; empty: it did
}

// behindError says that a collector did not keep up.
type behindError struct{ why string }

func (e *behindError) Error() string { return e.why }

// describeLateness says in what a collector was late while it was measured, if it was.
func (r *round) describeLateness() string {
	const (
		lateMost  = 0.01 // of the scrapes
		lostMost  = 0.01
		leastPart = 0.95 // of the samples that are due, but for those of
		gathered  = 1.5  // seconds, which may wait for others to be sent with
	)
	o := &r.out
	if share := float64(o.Late) / float64(max(o.Scraped+o.Late, 1)); share > lateMost {
		return fmt.Sprintf("%.0f %% of the scrapes came half an interval late or not at all", 100*share)
	}
	// A scrape that took longer than its timeout was answered for the target.
	if share := float64(o.Lost) / float64(max(o.Scraped, 1)); share > lostMost {
		return fmt.Sprintf("%.0f %% of the scrapes were answered and did not arrive", 100*share)
	}
	if got, due := r.measured(); got < leastPart*due-gathered*due/r.s.Measure.Seconds() {
		return fmt.Sprintf("%.0f %% of the samples that were due arrived in that time", 100*got/due)
	}
	return ""
}

// search finds the highest number that holds, within a tenth.
type search struct{ held, broke int } // the highest that held and the lowest that did not, 0 for none

// next returns the number to try next, the first one being start; 0 when the
// search is over.
func (s search) next(start int) int {
	switch {
	case s.held == 0 && s.broke == 0:
		return start
	case s.broke == 0:
		return s.held + max(s.held/2, 1)
	case s.held == 0:
		return s.broke / 2
	case s.broke-s.held <= max(s.held/10, 1):
		return 0
	}
	return (s.held + s.broke) / 2
}

// Ceiling finds how many targets a collector with one core brings to the sink
// without being late, and returns the round with the most of them. s.Load.Targets
// is tried first.
func Ceiling(ctx context.Context, c *Collector, s Scenario, number int, dir string, log io.Writer) (*Round, error) {
	return ceiling(s, log, func(at Scenario) (*Round, error) {
		return Measure(ctx, c, at, number, filepath.Join(dir, fmt.Sprint(at.Load.Targets)))
	})
}

func ceiling(s Scenario, log io.Writer, measure func(Scenario) (*Round, error)) (best *Round, err error) {
	var tried []Try
	var found search
	for n := found.next(s.Load.Targets); n > 0; n = found.next(s.Load.Targets) {
		at := s
		at.Load.Targets = n
		if at.Validate() != nil {
			break // that many are more than the bench can do
		}
		t := Try{Rate: float64(n*s.Load.Series) / s.Interval.Seconds()}
		o, err := measure(at)
		if behind, ok := errors.AsType[*behindError](err); ok {
			t.Why = behind.why
		} else if err != nil {
			return nil, err
		}
		if tried = append(tried, t); t.Why == "" {
			found.held, best = n, o
			fmt.Fprintf(log, "  %.0f samples/s held\n", t.Rate)
		} else {
			found.broke = n
			fmt.Fprintf(log, "  %.0f samples/s did not hold: %s\n", t.Rate, t.Why)
		}
	}
	if best == nil {
		return nil, fmt.Errorf("cannot find a rate that holds: the least that was tried did not, %s", tried[len(tried)-1].Why)
	}
	best.Tried = tried
	return best, nil
}
