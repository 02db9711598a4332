package target

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	f := func(want int64, at ...float64) {
		t.Helper()
		var p pace
		began := time.Unix(1e9, 0)
		for i, s := range at {
			now := began.Add(time.Duration(s * float64(time.Second)))
			if i == len(at)-1 { // the last one is the time of the check
				if got := p.countLate(now, time.Second); got != want {
					t.Errorf("asked at %v it is %d times late, want %d", at, got, want)
				}
				continue
			}
			p.recordScrape(now, time.Second)
		}
	}
	f(0, 100) // never scraped
	f(0, 0, 1, 2.4, 3, 4, 5.4)
	f(1, 0, 1, 2.6, 3, 4)
	f(1, 0, 1, 2.6)
	f(9, 0, 10)
	f(3, 0, 2, 4, 6)
	var p pace
	p.recordScrape(time.Unix(0, 0), 0)
	if p.countLate(time.Unix(1000, 0), 0) != 0 {
		t.Error("late without an interval")
	}
}
