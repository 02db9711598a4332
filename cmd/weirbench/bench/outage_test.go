package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// anOutage returns an outage from 10 to 20 s, in which the memory increases from
// 100 to 104 MB and decreases again.
func anOutage() *Outage {
	o := &Outage{Unit: "samples", DownAt: 10, UpAt: 20, DrainedAt: 22, RSSBefore: 100e6, RSSEnd: 102e6, RSSHighest: 104e6, DrainRate: 60000, Live: 10000}
	for s := range 30 {
		m := Moment{Meter: Meter{At: float64(s), RSS: 100e6}}
		if s >= 10 && s < 20 {
			m.RSS, m.Backlog = 104e6, int64(s-10)*10000
		}
		o.Over = append(o.Over, m)
	}
	return o
}

func TestOutageFigures(t *testing.T) {
	o := anOutage()
	f := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", name, got, want)
		}
	}
	f("growth", o.Growth(), 0.04)
	f("drain", o.DrainFactor(), 6)
	f("before", o.rss(0, 9.5), 100e6)
	f("half and half", o.rss(8, 11), 102e6)
	f("nothing", o.rss(100, 200), 0)
	var text, csv bytes.Buffer
	if err := o.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"104 MB", "0.09 million", "(+4.0 %)", "6.0 × the live rate"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	if err := o.CSV(&csv, 10); err != nil {
		t.Fatal(err)
	}
	// Every third reading, and all readings while the backlog is sent: 20 and 22
	// more.
	if lines := strings.Split(strings.TrimSpace(csv.String()), "\n"); len(lines) != 1+10+2 || lines[5] != "12.0,104000000,0,0.00,20000" {
		t.Errorf("got %d lines:\n%s", len(lines), &csv)
	}
}

func TestOutageSettles(t *testing.T) {
	f := func(missing int64, got sink.Stats) {
		t.Helper()
		served := target.Stats{Scrapes: map[string]int{"a": 5, "b": 4, "never": 0}}
		o := &Outage{}
		o.countMissing(served, got, 10)
		if o.Missing != missing || o.Duplicates != got.Duplicates || o.Reordered != got.Reordered {
			t.Errorf("%+v: got %+v, want %d missing", got, o, missing)
		}
	}
	ones := map[string]int{"a": 1, "b": 1}
	f(0, sink.Stats{Samples: 90, First: ones, Last: map[string]int{"a": 5, "b": 4}})
	f(10, sink.Stats{Samples: 80, First: ones, Last: map[string]int{"a": 5, "b": 3}})
	f(1, sink.Stats{Samples: 90, Duplicates: 1, First: ones, Last: map[string]int{"a": 5, "b": 3}}) // hidden by duplicates
	f(2, sink.Stats{Samples: 90, Duplicates: 2, Gaps: 2, First: ones, Last: map[string]int{"a": 5, "b": 4}})
	f(1, sink.Stats{Samples: 90, Reordered: 3, First: map[string]int{"a": 2, "b": 1}, Last: map[string]int{"a": 5, "b": 4}})
}
