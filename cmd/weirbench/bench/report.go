package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is a scenario with all its rounds.
type Report struct {
	Scenario string    `json:"scenario"`
	Help     string    `json:"help"`
	Began    time.Time `json:"began"`
	Machine  Machine   `json:"machine"`
	Command  string    `json:"command"`
	Rounds   []*Round  `json:"rounds"`
	Skipped  []string  `json:"skipped,omitempty"` // collectors that were not measured, and why
}

// collectors returns the titles in the order of their first round.
func (r *Report) collectors() []string {
	var out []string
	for _, o := range r.Rounds {
		if !slices.Contains(out, o.Collector) {
			out = append(out, o.Collector)
		}
	}
	return out
}

// of returns a collector's rounds.
func (r *Report) of(title string) (out []*Round) {
	for _, o := range r.Rounds {
		if o.Collector == title {
			out = append(out, o)
		}
	}
	return out
}

// Complete reports whether all rounds delivered all that they should.
func (r *Report) Complete() bool {
	return !slices.ContainsFunc(r.Rounds, func(o *Round) bool { return len(o.Faults) > 0 })
}

// Markdown writes the medians of the rounds as a table, with what one must
// know to read it.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", r.Scenario, r.Help)
	b.WriteString("| collector | version | CPU s per million samples | peak RSS | samples/s | bytes/sample | all targets after | delivered |\n|---|---|---|---|---|---|---|---|\n")
	for _, title := range r.collectors() {
		rounds := r.of(title)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.0f | %.1f | %.1f s | %s |\n", title, rounds[0].Version,
			spread(rounds, (*Round).PerMillion, "%.2f", ""),
			spread(rounds, func(o *Round) float64 { return float64(o.PeakRSS) / 1e6 }, "%.0f", " MB"),
			median(rounds, func(o *Round) float64 { return float64(o.Samples) / o.Seconds }),
			median(rounds, func(o *Round) float64 { return float64(o.Bytes) / float64(o.Samples) }),
			median(rounds, func(o *Round) float64 { return o.FirstAfter }),
			delivered(rounds))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "\nskipped: %s\n", s)
	}
	for _, o := range r.Rounds {
		for _, f := range o.Faults {
			fmt.Fprintf(&b, "\n%s, round %d: %s\n", o.Collector, o.Number, f)
		}
	}
	if len(r.Rounds) > 0 {
		others := func(o *Round) float64 { return o.OtherCores }
		m := r.Machine
		fmt.Fprintf(&b, "\nMedian of %d rounds of %.0f s each after the warm-up (lowest to highest in parentheses), in turn, on %d × %s, %.0f GB, %s %s; other programs used %.2f cores meanwhile (at most %.2f).\n",
			len(r.of(r.Rounds[0].Collector)), r.Rounds[0].Seconds, m.Cores, cmp.Or(m.CPU, m.Arch), float64(m.Memory)/1e9, m.OS, m.Kernel,
			median(r.Rounds, others), highest(r.Rounds, others))
	}
	if r.Command != "" {
		fmt.Fprintf(&b, "Command: `%s`\n", r.Command)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func delivered(rounds []*Round) string {
	var got, want int64
	bad := 0
	for _, o := range rounds {
		got, want = got+o.Delivered, want+o.Expected
		if len(o.Faults) > 0 {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Sprintf("**no**: %d of %d, %d rounds with faults", got, want, bad)
	}
	return fmt.Sprintf("all %d", want)
}

func values(rounds []*Round, f func(*Round) float64) []float64 {
	vs := make([]float64, len(rounds))
	for i, o := range rounds {
		vs[i] = f(o)
	}
	slices.Sort(vs)
	return vs
}

// median returns the middle value, of two the mean.
func median(rounds []*Round, f func(*Round) float64) float64 {
	vs := values(rounds, f)
	n := len(vs)
	return (vs[(n-1)/2] + vs[n/2]) / 2
}

func highest(rounds []*Round, f func(*Round) float64) float64 {
	vs := values(rounds, f)
	return vs[len(vs)-1]
}

// spread writes median, lowest and highest.
func spread(rounds []*Round, f func(*Round) float64, format, unit string) string {
	vs := values(rounds, f)
	out := fmt.Sprintf(format, median(rounds, f)) + unit
	if len(vs) == 1 {
		return out
	}
	return out + fmt.Sprintf(" ("+format+"–"+format+")", vs[0], vs[len(vs)-1])
}
