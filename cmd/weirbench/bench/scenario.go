package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/target"
)

// Scenario is work at which collectors are measured.
type Scenario struct {
	Name     string
	Help     string
	Load     target.Options
	Interval time.Duration
	Warmup   time.Duration // from the start of the collector; not measured
	Measure  time.Duration // a multiple of Interval

	Drop  string // regular expression of the names that the collector drops; it also adds a label
	Scale bool   // a script scales three in ten series
	V2    bool   // remote write 2.0

	// Ceiling measures the highest sustainable rate instead: the collector has
	// one core, targets and sink have the others, and targets are added until the
	// collector is late.
	Ceiling bool

	Usual  []string // the collectors that are measured when all scenarios are run
	Rounds int      // and the number of rounds
}

// Scenarios returns the presets. The first one is the default.
func Scenarios() []Scenario {
	usual := Scenario{
		Name: "passthrough", Help: "100 targets × 1,000 series every 5 s, sent on as they are",
		Load: target.Defaults(), Interval: 5 * time.Second, Warmup: 15 * time.Second, Measure: 60 * time.Second,
		Usual: []string{"weir", "vmagent"}, Rounds: 3,
	}
	with := func(name, help string, change func(*Scenario)) Scenario {
		s := usual
		s.Name, s.Help = name, help
		change(&s)
		return s
	}
	passthrough := usual
	passthrough.Usual = []string{"weir", "prometheus", "vmagent"}
	return []Scenario{
		passthrough,
		with("million", "1,000 targets × 1,000 series every 60 s, sent on as they are", func(s *Scenario) {
			s.Load.Targets, s.Interval, s.Warmup, s.Measure, s.Rounds = 1000, time.Minute, 70*time.Second, 60*time.Second, 2
		}),
		with("relabel", "passthrough's load; half is dropped by name, and a label added to the rest", func(s *Scenario) {
			s.Drop = "http_request_duration_seconds_.*|http_requests_total"
		}),
		with("lua-scale", "passthrough's load; a script scales three series in ten", func(s *Scenario) { s.Scale, s.Usual = true, []string{"weir"} }),
		with("churn", "passthrough's load; at each scrape 5 % of the series are new ones", func(s *Scenario) { s.Load.Churn = 0.05 }),
		with("gzip", "passthrough's load; bodies come compressed", func(s *Scenario) { s.Load.Gzip = target.GzipAccept }),
		with("v2", "passthrough's load; sent by remote write 2.0", func(s *Scenario) { s.V2, s.Usual = true, []string{"weir"} }),
		with("ceiling", "targets of 1,000 series every second, more and more until a collector that has one core is late", func(s *Scenario) {
			s.Load.Targets, s.Interval, s.Warmup, s.Measure, s.Ceiling = 200, time.Second, 10*time.Second, 20*time.Second, true
			s.Usual, s.Rounds = passthrough.Usual, 1
		}),
	}
}

// ScenarioNamed returns a preset.
func ScenarioNamed(name string) (Scenario, error) {
	all := Scenarios()
	if i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return Scenario{}, fmt.Errorf("cannot run scenario %q: there are %s", name, strings.Join(names, ", "))
}

// Validate returns an error if s is invalid.
func (s Scenario) Validate() error {
	if err := s.Load.Validate(); err != nil {
		return err
	}
	switch {
	case s.Load.Sequences == 0:
		return fmt.Errorf("cannot prove anything without sequence series: give each target at least 1")
	case s.Interval < time.Second:
		return fmt.Errorf("cannot scrape every %s: vmagent and Prometheus take whole seconds", s.Interval)
	case s.Interval%time.Second != 0:
		return fmt.Errorf("cannot scrape every %s: give whole seconds", s.Interval)
	case s.Measure < s.Interval:
		return fmt.Errorf("cannot measure for %s: a target is scraped every %s", s.Measure, s.Interval)
	case s.Measure%s.Interval != 0:
		return fmt.Errorf("cannot measure for %s: it must be a multiple of the interval %s, or targets count unequally", s.Measure, s.Interval)
	}
	return nil
}

// kept returns the number of samples of a scrape that should arrive.
func (s Scenario) kept() (int, error) {
	b, err := target.NewBody(s.Load)
	if err != nil {
		return 0, err
	}
	if s.Drop == "" {
		return b.Len(), nil
	}
	re, err := regexp.Compile("^(?:" + s.Drop + ")$")
	if err != nil {
		return 0, fmt.Errorf("cannot read what scenario %s drops: %w", s.Name, err)
	}
	return b.Count(func(name string) bool { return !re.MatchString(name) }), nil
}
