package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report is the result of all rounds of a scenario.
type Report struct {
	Scenario string    `json:"scenario"`
	Help     string    `json:"help"`
	Began    time.Time `json:"began"`
	Machine  Machine   `json:"machine"`
	Command  string    `json:"command"`
	Rounds   []*Round  `json:"rounds"`
	Skipped  []string  `json:"skipped,omitempty"` // collectors that were not measured, with the reasons
}

// collectors returns the titles in the order of their first rounds.
func (r *Report) collectors() []string {
	var out []string
	for _, o := range r.Rounds {
		if !slices.Contains(out, o.Collector) {
			out = append(out, o.Collector)
		}
	}
	return out
}

// roundsOf returns the rounds of a collector.
func (r *Report) roundsOf(title string) (out []*Round) {
	for _, o := range r.Rounds {
		if o.Collector == title {
			out = append(out, o)
		}
	}
	return out
}

// Complete reports whether all rounds delivered everything.
func (r *Report) Complete() bool {
	return !slices.ContainsFunc(r.Rounds, func(o *Round) bool { return len(o.Faults) > 0 })
}

// Markdown writes the medians of the rounds as tables with explanations. All
// reports must be from the same run.
func Markdown(w io.Writer, reports ...*Report) error {
	var b strings.Builder
	for _, r := range reports {
		fmt.Fprintf(&b, "%s: %s\n\n", r.Scenario, r.Help)
	}
	costs := slices.DeleteFunc(slices.Clone(reports), (*Report).ceiling)
	if len(costs) > 0 {
		b.WriteString("| scenario | collector | version | CPU s per million samples | peak RSS | compared | samples/s | bytes/sample | all targets after | delivered |\n|---|---|---|---|---|---|---|---|---|---|\n")
	}
	for _, r := range costs {
		for _, title := range r.collectors() {
			rounds := r.roundsOf(title)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %.0f | %.1f | %.1f s | %s |\n", r.Scenario, title, rounds[0].Version,
				spread(rounds, (*Round).PerMillion, "%.2f", ""), spread(rounds, (*Round).peakMB, "%.0f", " MB"), r.compared(title, reports),
				Median(rounds, func(o *Round) float64 { return float64(o.Samples) / o.Seconds }),
				Median(rounds, func(o *Round) float64 { return float64(o.Bytes) / float64(o.Samples) }),
				Median(rounds, func(o *Round) float64 { return o.FirstAfter }),
				delivered(rounds, (*Round).arrived))
		}
	}
	for _, r := range reports {
		if r.ceiling() {
			r.ceilings(&b)
		}
		r.notes(&b)
	}
	r := reports[0]
	fmt.Fprintf(&b, "\nMedians (lowest to highest in parentheses), the collectors in turn, on %d × %s, %.0f GB, %s %s", r.Machine.Cores, cmp.Or(r.Machine.CPU, r.Machine.Arch), float64(r.Machine.Memory)/1e9, r.Machine.OS, r.Machine.Kernel)
	var all []*Round
	for i, r := range reports {
		all = append(all, r.Rounds...)
		if len(r.Rounds) > 0 && !r.ceiling() {
			sep := "; "
			if i > 0 {
				sep = ", "
			}
			fmt.Fprintf(&b, "%s%s %d × %.0f s", sep, r.Scenario, len(r.roundsOf(r.Rounds[0].Collector)), r.Rounds[0].Seconds)
		}
	}
	if len(all) > 0 {
		others := func(o *Round) float64 { return o.OtherCores }
		fmt.Fprintf(&b, " after the warm-up; other programs used %.2f cores meanwhile (at most %.2f)", Median(all, others), highest(all, others))
	}
	b.WriteString(".\n")
	if r.Command != "" {
		fmt.Fprintf(&b, "Command: `%s`\n", r.Command)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Round) peakMB() float64 { return float64(r.PeakRSS) / 1e6 }

func (r *Round) arrived() (got, want int64, faults []string) {
	return r.Delivered, r.Expected, r.Faults
}

func (r *Report) ceiling() bool {
	return slices.ContainsFunc(r.Rounds, func(o *Round) bool { return len(o.Tried) > 0 })
}

// compared compares the resources of a collector with those of vmagent, and with
// its own resources when it forwards the same scrapes unchanged, because dropped
// samples cost nothing later.
func (r *Report) compared(title string, all []*Report) string {
	if title == "vmagent" {
		return ""
	}
	var out []string
	rounds := r.roundsOf(title)
	if with := r.roundsOf("vmagent"); len(with) > 0 {
		out = append(out, fmt.Sprintf("%.2f × CPU, %.2f × RSS of vmagent's",
			Median(rounds, (*Round).PerMillion)/Median(with, (*Round).PerMillion), Median(rounds, (*Round).peakMB)/Median(with, (*Round).peakMB)))
	}
	for _, o := range all {
		with := o.roundsOf(title)
		if o.Scenario != "passthrough" || o == r || len(with) == 0 {
			continue
		}
		if rate := Median(rounds, (*Round).scrapes) / Median(with, (*Round).scrapes); rate > 0.95 && rate < 1.05 {
			out = append(out, fmt.Sprintf("%.2f × CPU, %.2f × RSS of passthrough's",
				Median(rounds, (*Round).perScrape)/Median(with, (*Round).perScrape), Median(rounds, (*Round).peakMB)/Median(with, (*Round).peakMB)))
		}
	}
	return strings.Join(out, "; ")
}

func (r *Round) scrapes() float64   { return float64(r.Scraped) / r.Seconds }
func (r *Round) perScrape() float64 { return r.CPUSeconds / float64(r.Scraped) }

// ceilings writes the results of Ceiling.
func (r *Report) ceilings(b *strings.Builder) {
	b.WriteString("\n| collector | version | samples/s that it held on one core | CPU s per million samples | peak RSS | targets and sink used of the other cores | did not hold |\n|---|---|---|---|---|---|---|\n")
	for _, title := range r.collectors() {
		rounds := r.roundsOf(title)
		var broke []string
		for _, o := range rounds {
			for _, t := range o.Tried {
				if t.Why != "" {
					broke = append(broke, fmt.Sprintf("%.0f: %s", t.Rate, t.Why))
				}
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %.2f | %s |\n", title, rounds[0].Version,
			spread(rounds, (*Round).held, "%.0f", ""), spread(rounds, (*Round).PerMillion, "%.2f", ""), spread(rounds, (*Round).peakMB, "%.0f", " MB"),
			Median(rounds, func(o *Round) float64 { return (o.SinkCPU + o.TargetCPU) / o.Seconds }), strings.Join(broke, "; "))
	}
}

// held returns the highest rate that the collector sustained.
func (r *Round) held() (most float64) {
	for _, t := range r.Tried {
		if t.Why == "" {
			most = max(most, t.Rate)
		}
	}
	return most
}

// notes writes deviations, and the memory over time for long rounds.
func (r *Report) notes(b *strings.Builder) {
	for _, s := range r.Skipped {
		fmt.Fprintf(b, "\nskipped: %s\n", s)
	}
	for _, o := range r.Rounds {
		for _, f := range o.Faults {
			fmt.Fprintf(b, "\n%s, %s, round %d: %s\n", r.Scenario, o.Collector, o.Number, f)
		}
		if early, late := o.Growth(); o.Seconds >= longRound && early > 0 {
			fmt.Fprintf(b, "\n%s, %s, round %d: memory went from %.0f MB after a sixth of the time to %.0f MB at its end (%+.0f %%): `%s`\n",
				r.Scenario, o.Collector, o.Number, early, late, 100*(late/early-1), o.Memory().Text(60))
		}
	}
}

// longRound is the duration in seconds from which the memory of a round is shown.
const longRound = 300

// delivered describes whether everything was delivered, or in how many rounds it
// was not.
func delivered[R any](rounds []R, arrived func(R) (got, want int64, faults []string)) string {
	var got, want int64
	bad := 0
	for _, o := range rounds {
		g, w, faults := arrived(o)
		got, want = got+g, want+w
		if len(faults) > 0 {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Sprintf("**no**: %d of %d, %d rounds with faults", got, want, bad)
	}
	return fmt.Sprintf("all %d", want)
}

func values[R any](rounds []R, f func(R) float64) []float64 {
	vs := make([]float64, len(rounds))
	for i, o := range rounds {
		vs[i] = f(o)
	}
	slices.Sort(vs)
	return vs
}

// Median returns the median; for an even number, the mean of the two middle
// values.
func Median[R any](rounds []R, f func(R) float64) float64 {
	vs := values(rounds, f)
	n := len(vs)
	return (vs[(n-1)/2] + vs[n/2]) / 2
}

func highest[R any](rounds []R, f func(R) float64) float64 {
	vs := values(rounds, f)
	return vs[len(vs)-1]
}

// spread formats the median, the lowest and the highest value.
func spread[R any](rounds []R, f func(R) float64, format, unit string) string {
	vs := values(rounds, f)
	out := fmt.Sprintf(format, Median(rounds, f)) + unit
	if len(vs) == 1 {
		return out
	}
	return out + fmt.Sprintf(" ("+format+"–"+format+")", vs[0], vs[len(vs)-1])
}
