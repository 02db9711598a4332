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
	Why  string  `json:"why,omitempty"` // why the collector could not sustain the rate; empty if it could
}

// behindError means that a collector did not keep up.
type behindError struct{ why string }

func (e *behindError) Error() string { return e.why }

// describeLateness describes how a collector was late during the measurement. It
// returns "" if it was not.
func (r *round) describeLateness() string {
	const (
		lateMost  = 0.01 // of the scrapes
		lostMost  = 0.01
		leastPart = 0.95 // of the samples that were due, except those of the last
		gathered  = 1.5  // seconds, because samples may wait to be sent together
	)
	o := &r.out
	if share := float64(o.Late) / float64(max(o.Scraped+o.Late, 1)); share > lateMost {
		return fmt.Sprintf("%.0f %% of the scrapes came half an interval late or not at all", 100*share)
	}
	// If a scrape takes longer than its timeout, the target has answered it, but
	// the collector loses it.
	if share := float64(o.Lost) / float64(max(o.Scraped, 1)); share > lostMost {
		return fmt.Sprintf("%.0f %% of the scrapes were answered and did not arrive", 100*share)
	}
	if got, due := r.measured(); got < leastPart*due-gathered*due/r.s.Measure.Seconds() {
		return fmt.Sprintf("%.0f %% of the samples that were due arrived in that time", 100*got/due)
	}
	return ""
}

// search finds the highest number that holds, with a precision of a tenth.
type search struct{ held, broke int } // the highest number that held and the lowest that did not; 0 if there is none

// next returns the number to try next, beginning with start. It returns 0 when
// the search is complete.
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

// Ceiling finds the number of targets whose samples a collector with one core can
// deliver without being late. It returns the round with the highest number. It
// begins with s.Load.Targets.
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
			break // the benchmark itself cannot handle this number
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
