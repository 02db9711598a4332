package scrape

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
)

// atEnd returns the last value or marker that the collector got for each series.
func (c *collector) atEnd() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := map[string]string{}
	for _, scrape := range c.scrapes {
		for _, s := range scrape {
			last[s.Series] = "value"
			if s.V == "stale" {
				last[s.Series] = "marker"
			}
		}
	}
	return last
}

// scraper is Prometheus or weir, scraping the world into a collector.
type scraper interface {
	update(a *Arguments) // changes its targets or its configuration
	remove()             // removes the job from the configuration
	stop()               // stops the process
}

type prometheusScraper struct {
	t testing.TB
	*manager
}

func (p prometheusScraper) update(a *Arguments) { p.apply(p.t, a) }
func (p prometheusScraper) remove() {
	p.apply(p.t, nil)
	time.Sleep(time.Minute)
	p.stop()
}

type weirScraper struct {
	t   testing.TB
	c   *Component
	end func(cause error)
}

func (s weirScraper) update(a *Arguments) {
	a.ForwardTo = s.c.want.set.args.ForwardTo
	if err := s.c.Update(a); err != nil {
		s.t.Error(err)
	}
}
func (s weirScraper) remove() { s.end(component.ErrRemoved) }
func (s weirScraper) stop()   { s.end(nil) }

// TestEndsAsPrometheus compares for which series Prometheus and weir write a
// marker when a target, job or process ends. Prometheus writes the markers of a
// target two intervals later, so only the last values are compared.
func TestEndsAsPrometheus(t *testing.T) {
	const interval = "scrape_interval = \"15s\"\n"
	two := `targets = [{ __address__ = "target.test:80", env = "one" }, { __address__ = "target.test:80", env = "two" }]`
	body := text("a{job=\"x\"} 1\nb 2\nc 3 1\n")
	f := func(name string, do func(s scraper, start func() scraper), differ ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(slices.Repeat([]answer{body}, 200))
				defer func() {
					w.server.Close()
					synctest.Wait()
				}()
				theirs := newCollector(t)
				ours := new(collector)
				run := func(start func() scraper) {
					s := start()
					time.Sleep(time.Minute)
					do(s, start)
				}
				run(func() scraper {
					return prometheusScraper{t, startManager(t, w, decode(t, interval+two), theirs)}
				})
				run(func() scraper {
					c, end := startWeir(t, w, decode(t, interval+two), ours)
					return weirScraper{t, c, end}
				})
				want, got := theirs.atEnd(), ours.atEnd()
				if len(differ) > 0 {
					// The deliberate difference: see RATIONALE.md, "Why are there
					// no staleness markers when weir stops?"
					for s := range want {
						own := strings.Contains(s, `__name__="c"`) // has its own timestamps and never gets a marker
						if want[s] != differ[0] || got[s] != differ[1] && !own {
							t.Errorf("%s: Prometheus wrote a %s last and weir a %s, want %v", s, want[s], got[s], differ)
						}
					}
				} else if d := cmp.Diff(want, got); d != "" {
					t.Errorf("last of each series (-Prometheus +weir)\n%s", d)
				}
				if n := len(slices.Collect(maps.Keys(want))); n < 16 {
					t.Errorf("only %d series were compared", n)
				}
			})
		})
	}
	wait := func() { time.Sleep(2 * time.Minute) }
	f("process stops", func(s scraper, _ func() scraper) { s.stop() })
	f("process restarts", func(s scraper, start func() scraper) {
		s.stop()
		time.Sleep(time.Minute)
		s = start()
		wait()
		s.stop()
	})
	f("target removed", func(s scraper, _ func() scraper) {
		s.update(decode(t, interval+`targets = [{ __address__ = "target.test:80", env = "one" }]`))
		wait()
		s.stop()
	})
	f("all targets removed", func(s scraper, _ func() scraper) {
		s.update(decode(t, interval+"targets = []"))
		wait()
		s.stop()
	})
	f("config changed, series the same", func(s scraper, _ func() scraper) {
		s.update(decode(t, interval+two+"\nscrape_timeout = \"5s\""))
		wait()
		s.stop()
	})
	f("config changed, other series", func(s scraper, _ func() scraper) {
		s.update(decode(t, interval+two+"\nhonor_labels = true"))
		wait()
		s.stop()
	})
	f("job removed", func(s scraper, _ func() scraper) { s.remove() }, "value", "marker")
}

// TestRestartWithoutSeries: as in Prometheus, series that disappeared while no
// process was running get no marker, because they are unknown.
func TestRestartWithoutSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, less := text("a 1\nb 2\n"), text("a 1\n")
		w := newWorld(append(slices.Repeat([]answer{full}, 4), slices.Repeat([]answer{less}, 10)...))
		defer func() {
			w.server.Close()
			synctest.Wait()
		}()
		theirs := newCollector(t)
		ours := new(collector)
		a := decode(t, "scrape_interval = \"15s\"")
		manage(t, w, a, 3, theirs)
		manage(t, w, a, 3, theirs)
		for range 2 {
			_, stop := runWeir(t, w, decode(t, "scrape_interval = \"15s\""), ours)
			time.Sleep(time.Minute)
			stop()
		}
		want, got := theirs.atEnd(), ours.atEnd()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("last of each series (-Prometheus +weir)\n%s", d)
		}
		for s, last := range got {
			if last != "value" {
				t.Errorf("%s has a %s last", s, last)
			}
		}
	})
}
