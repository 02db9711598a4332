package bench

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSearch(t *testing.T) {
	f := func(start, ceiling int, want ...int) {
		t.Helper()
		var s search
		var tried []int
		for n := s.next(start); n > 0; n = s.next(start) {
			if tried = append(tried, n); len(tried) > 50 {
				t.Fatalf("from %d to %d there is no end: %v", start, ceiling, tried)
			}
			if n <= ceiling {
				s.held = n
			} else {
				s.broke = n
			}
		}
		if len(tried) != len(want) {
			t.Fatalf("from %d to %d: got %v, want %v", start, ceiling, tried, want)
		}
		for i := range want {
			if tried[i] != want[i] {
				t.Fatalf("from %d to %d: got %v, want %v", start, ceiling, tried, want)
			}
		}
	}
	f(200, 330, 200, 300, 450, 375, 337, 318)
	f(200, 90, 200, 100, 50, 75, 87, 93)
	f(200, 0, 200, 100, 50, 25, 12, 6, 3, 1)
	f(1, 1, 1, 2)
}

func TestCeiling(t *testing.T) {
	s, err := ScenarioNamed("ceiling")
	if err != nil {
		t.Fatal(err)
	}
	f := func(most int, want string) {
		t.Helper()
		var log strings.Builder
		o, err := ceiling(s, &log, func(at Scenario) (*Round, error) {
			switch n := at.Load.Targets; {
			case most < 0:
				return nil, errors.New("cannot start it")
			case n > most && n%2 == 0:
				return nil, fmt.Errorf("%w; its output: x", &behindError{"late"})
			case n > most:
				return nil, &behindError{"incomplete"}
			}
			return &Round{Collector: fmt.Sprint(at.Load.Targets)}, nil
		})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s %.0f %v", o.Collector, o.held(), o.Tried[len(o.Tried)-1])
		}
		if got != want {
			t.Errorf("up to %d: got %q, want %q; the log:\n%s", most, got, want, &log)
		}
	}
	f(330, "318 318000 {318000 }")
	f(400, "375 375000 {412000 late}")
	f(0, "cannot find a rate that holds: the least that was tried did not, incomplete")
	f(-1, "cannot start it")
	f(1e9, "7683 7683000 {7.683e+06 }")
}

func TestBehind(t *testing.T) {
	f := func(want string, scraped, late, lost, samples int64) {
		t.Helper()
		s := Scenarios()[0]
		s.Load.Targets, s.Interval, s.Measure = 10, time.Second, 10*time.Second
		r := round{s: s, kept: 1000, out: Round{Scraped: scraped, Late: late, Lost: lost, Samples: samples}}
		if got := r.describeLateness(); got != want {
			t.Errorf("%d scrapes, %d late, %d lost, %d samples: got %q, want %q", scraped, late, lost, samples, got, want)
		}
	}
	f("", 100, 0, 0, 100_000)
	f("", 100, 1, 1, 96_000)
	f("2 % of the scrapes were answered and did not arrive", 100, 0, 2, 98_000)
	f("5 % of the scrapes came half an interval late or not at all", 95, 5, 0, 95_000)
	f("", 100, 0, 0, 80_000)
	f("79 % of the samples that were due arrived in that time", 100, 0, 0, 79_000)
	f("100 % of the scrapes came half an interval late or not at all", 0, 100, 0, 0)
}

// TestPinned starts a program that prints the cores on which it may run.
func TestPinned(t *testing.T) {
	one, rest, err := split()
	if err != nil {
		t.Skip(err)
	}
	f := func(on cores, want int) {
		t.Helper()
		dir := t.TempDir()
		cmd := exec.Command("sh", "-c", "nproc; echo $GOMAXPROCS")
		var out strings.Builder
		cmd.Stdout = &out
		p, err := startProcess("nproc", cmd, dir, on)
		if err != nil {
			t.Fatal(err)
		}
		<-p.gone
		if n := strconv.Itoa(want); out.String() != n+"\n"+n+"\n" {
			t.Errorf("got %q, want %d cores: %v", &out, want, p.err)
		}
	}
	f(one, 1)
	f(rest, rest.count())
	again, _, err := split()
	if err != nil || again.count() != 1 || one.count() != 1 {
		t.Errorf("this program has lost cores: %v", err)
	}
}

func TestGrowth(t *testing.T) {
	r := &Round{}
	if early, late := r.Growth(); early != 0 || late != 0 {
		t.Errorf("without meters it went from %g to %g", early, late)
	}
	for i := range 60 { // 100 MB, and 10 MB more in the last tenth
		rss := int64(100e6)
		if i >= 54 {
			rss += 10e6
		}
		r.Over = append(r.Over, Meter{At: float64(i), RSS: rss})
	}
	if early, late := r.Growth(); early != 100 || late != 110 {
		t.Errorf("memory went from %g to %g MB, want 100 to 110", early, late)
	}
}
