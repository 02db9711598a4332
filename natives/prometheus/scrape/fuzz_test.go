package scrape

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// edit makes another body of one: script is a list of (offset, 2 bytes;
// number of bytes to delete; number of bytes to insert; those).
func edit(body, script []byte) []byte {
	body = slices.Clone(body)
	for len(script) >= 4 && len(body) > 0 {
		at := (int(script[0])<<8 | int(script[1])) % len(body)
		del := min(int(script[2]), len(body)-at)
		ins := min(int(script[3]), len(script)-4)
		body = slices.Replace(body, at, at+del, script[4:4+ins]...)
		script = script[4+ins:]
	}
	return body
}

// shortened returns the first lines of a body of testdata, with the EOF line.
func shortened(t testing.TB, name string, n int) []byte {
	a := corpus(t, name)
	ls := strings.SplitAfter(a.body, "\n")
	short := strings.Join(ls[:min(n, len(ls))], "")
	if a.contentType == omType && !strings.HasSuffix(short, "# EOF\n") {
		short += "# EOF\n"
	}
	return []byte(short)
}

func addSeeds(f *testing.F) {
	for _, name := range []string{"node_exporter.txt", "alltypes.txt", "exemplars.om.txt", "histogram.om.txt", "created.om.txt", "timestamps.om.txt"} {
		f.Add(strings.HasSuffix(name, ".om.txt"), uint8(0), shortened(f, name, 30), []byte{0, 200, 3, 1, '7'}, []byte{1, 0, 0, 10, 'x', ' ', '1', '\n', 'y', '{', '}', ' ', '2', '\n'})
	}
	for i, v := range valueSeeds {
		f.Add(i%2 == 0, uint8(i), []byte("# TYPE a counter\na{b=\"c\"} 1\na{b=\"d\"} "+v+" 5\nb 1\n# EOF\n"), []byte{0, 28, 1, 1, '2'}, append([]byte{0, 28, 1, byte(len(v))}, v...))
	}
	f.Add(true, uint8(1), []byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1 # {a=\"b\"} 1\nc 1\nd 2\ne 3\nf 4\n# EOF\n"), []byte{0, 60, 1, 1, '9'}, []byte{0, 43, 1, 1, '3'})
	f.Add(false, uint8(2), []byte("a 1 1000\na 2\na 3\nb 1\n"), []byte{0, 4, 4, 0}, []byte{0, 2, 1, 2, '\n', ' '})
}

// fuzzArgs are settings that a fuzz test chooses from.
var fuzzArgs = []string{
	"", "honor_timestamps = false", "track_timestamps_staleness = true", "sample_limit = 20", "honor_labels = true",
	"label_limit = 4", `metric_name_validation_scheme = "utf8"`, "honor_metadata = false", `scrape_fallback_protocol = ""`,
}

// taken is what an intake made of a body.
type taken struct {
	Err                                           string
	Total, Added, SeriesAdded, Repeated, TooAhead int
	Rows                                          []sample
}

// take scrapes a body into a cache as a loop does.
func take(set *settings, tags []labels.Label, c *cache, body []byte, contentType string, now int64) (out taken) {
	in := &intake{set: set, tags: tags, c: c, now: now, maxT: now + maxAhead}
	in.opts.FallbackContentType = set.cfg.ScrapeFallbackProtocol.HeaderMediaType()
	in.opts.IgnoreNativeHistograms = true
	err := in.body(append(make([]byte, 0, len(body)+1), body...), contentType)
	out = taken{Total: in.total, Added: in.added, SeriesAdded: in.seriesAdded, Repeated: in.repeated, TooAhead: in.ahead}
	if err != nil {
		out.Err = err.Error()
		in = &intake{set: set, tags: tags, c: c, now: now, maxT: now + maxAhead}
		in.empty()
	}
	if in.wholly {
		in.rows.series = c.layout.columns(set, nil)
	}
	// The collector looks at the last row's time, and there may be none.
	end := batch.FromLabels(labels.FromStrings("end", "of rows"))
	defer end.Release()
	in.rows.add(end, now, 0)
	var k collector
	if err := k.ConsumeMetrics(context.Background(), in.rows.batch(1)); err != nil {
		out.Err += err.Error()
	}
	out.Rows = k.scrapes[0]
	for _, s := range c.gone {
		s.h.Release()
	}
	c.gone = c.gone[:0]
	return out
}

// FuzzLayout compares what comes of bodies with layouts and without.
func FuzzLayout(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, openMetrics bool, args uint8, body, edit1, edit2 []byte) {
		a := decode(t, fuzzArgs[int(args)%len(fuzzArgs)])
		set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, a, service.HTTPData{})
		if err != nil {
			t.Fatal(err)
		}
		contentType := textType
		if openMetrics {
			contentType = omType
		}
		tags := []labels.Label{{Name: "instance", Value: "i"}, {Name: "job", Value: "j"}}
		second := edit(body, edit1)
		third := edit(second, edit2)
		with, without := newCache(), newCache()
		for i, b := range [][]byte{body, body, second, body, second, third, third, nil, body, second, second, third} {
			now := int64(1e12) + int64(i)*1000
			without.dropLayout()
			with.patient, without.patient = 0, 100 // packed by every body, and by none
			got := take(set, tags, with, b, contentType, now)
			want := take(set, tags, without, b, contentType, now)
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("scrape %d (-textparse +layout)\n%s\nbody %q\nsecond %q\nthird %q", i+1, d, body, second, third)
			}
			if with.lines == nil {
				with.unpack()
				if d := cmp.Diff(keys(without), keys(with)); d != "" {
					t.Fatalf("lines after scrape %d (-kept +unpacked)\n%s\nbody %q", i+1, d, body)
				}
				with.pack()
			}
		}
	})
}

func keys(c *cache) []string { return slices.Sorted(maps.Keys(c.lines)) }

// TestPack: a cache that has been packed for a while takes bodies as before, is
// packed later each time, and never when the layout has not all of its lines.
func TestPack(t *testing.T) {
	set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, decode(t, ""), service.HTTPData{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCache()
	body := func(b string) {
		t.Helper()
		if got := take(set, nil, c, []byte(b), textType, int64(1e12)); got.Err != "" {
			t.Fatal(got.Err)
		}
	}
	f := func(b string, times int, packed bool) {
		t.Helper()
		for range times {
			body(b)
		}
		if got := c.lines == nil; got != packed {
			t.Errorf("after %d times %q packed is %t", times, b, got)
		}
	}
	f("a 1\nb{x=\"1\"}  2\n", 1, true)
	f("b{x=\"1\"}  2\na 1\n", 1, false)
	if d := cmp.Diff([]string{"a", "b{x=\"1\"}"}, keys(c)); d != "" {
		t.Error(d)
	}
	if len(c.byLabels) != 2 || len(c.gone) != 0 {
		t.Error("another order of the lines made other series")
	}
	f("a 1\n", 3, false)
	f("a 1\n", 1, true)
	in := &intake{set: set, c: c, now: 1e12}
	in.empty()
	if len(in.series) != 1 || c.lines == nil {
		t.Errorf("a failed scrape has %d markers", len(in.series))
	}
	f("a 2\n", 7, false)
	f("a 2\n", 1, true)
	c.forget()
	f("a 2\n", 15, false)
	f("a 2\n", 1, true)
	c = newCache()
	f("# TYPE a counter\na 1\n# HELP a said too late for it\n", 1, false)
	f("# TYPE a counter\na 1\n# HELP a said too late for it\n", 1, true)
	c = newCache()
	f("# TYPE a counter\na 1\n# TYPE a gauge\n", 5, false)
}

// FuzzAsPrometheus compares mutated bodies with Prometheus's scrape manager.
func FuzzAsPrometheus(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, openMetrics bool, args uint8, body, edit1, edit2 []byte) {
		contentType := textType
		if openMetrics {
			contentType = omType
		}
		var answers []answer
		for _, b := range [][]byte{body, body, edit(body, edit1), body, edit(edit(body, edit1), edit2), body} {
			answers = append(answers, answer{contentType: contentType, body: string(b)})
		}
		which := fuzzArgs[int(args)%len(fuzzArgs)]
		if which == "honor_metadata = false" {
			which = "" // the manager always passes metadata on
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(answers)
			defer func() {
				w.server.Close()
				synctest.Wait()
			}()
			// A parser of theirs may panic, which would end the test.
			if panics(t, which, answers) {
				t.Skip("textparse panics")
			}
			want := byManager(t, w, decode(t, which), len(answers))
			got := byWeir(t, w, decode(t, which), len(answers))
			for i := range answers {
				if d := cmp.Diff(want[i], got[i]); d != "" {
					t.Errorf("scrape %d (-Prometheus +weir)\n%s\nbody %q", i+1, d, answers[i].body)
				}
			}
		})
	})
}

func panics(t *testing.T, args string, answers []answer) bool {
	a := decode(t, args)
	set := &settings{args: a, cfg: a.config("x")}
	for _, an := range answers {
		got := take(set, nil, newCache(), []byte(an.body), an.contentType, 0)
		if strings.Contains(got.Err, "panicked") {
			return true
		}
	}
	return false
}
