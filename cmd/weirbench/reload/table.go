package reload

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// table is what Run prints.
type table struct {
	rows          strings.Builder
	distributions strings.Builder
	broken        []string
}

// times adds a time that depends on the machine.
func (t *table) times(what string, limit, got time.Duration) {
	verdict := "met"
	if got > limit {
		verdict = "missed"
	}
	t.row(what, "≤ "+limit.String(), round(got).String(), verdict)
}

// promise adds something that must hold on every machine.
func (t *table) promise(what, want, got string, kept bool) {
	verdict := "met"
	if !kept {
		verdict = "BROKEN"
		t.broken = append(t.broken, fmt.Sprintf("%s: %s, not %s", what, got, want))
	}
	t.row(what, want, got, verdict)
}

func (t *table) row(cells ...string) {
	fmt.Fprintf(&t.rows, "| %s |\n", strings.Join(cells, " | "))
}

// distribution adds how measured times are distributed.
func (t *table) distribution(what string, times []time.Duration) {
	fmt.Fprintf(&t.distributions, "| %s | %d |", what, len(times))
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
		fmt.Fprintf(&t.distributions, " %s |", round(quantile(times, q)))
	}
	t.distributions.WriteByte('\n')
}

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "| metric | target | result | |\n|---|---|---|---|\n%s", t.rows.String())
	if t.distributions.Len() > 0 {
		fmt.Fprintf(w, "\n| distribution | times | min | p50 | p90 | p99 | max |\n|---|---|---|---|---|---|---|\n%s", t.distributions.String())
	}
}

// err returns an error if a promise was broken.
func (t *table) err() error {
	if len(t.broken) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrBroken, strings.Join(t.broken, "; "))
}

// round returns d with a precision that is useful in a table.
func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
