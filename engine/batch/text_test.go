package batch_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/engine/batch"
)

// same compares batches by content: the bits of floats, labels and metadata.
var same = cmp.Options{
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
	cmp.Comparer(func(a, b *batch.Series) bool {
		am, bm := a.Meta(), b.Meta()
		return a.Equal(b) && (am == nil) == (bm == nil) && (am == nil || *am == *bm)
	}),
	cmpopts.EquateEmpty(),
}

func TestTextRoundTripsEverything(t *testing.T) {
	for seed := range uint64(2000) {
		want := newRandom(seed).metrics(int(seed % 12))
		text := batch.AppendText(nil, want)
		got, err := batch.ParseText(string(text), batch.TextOptions{T: 77, Source: want.Source})
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, text)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s\n%s", seed, diff, text)
		}
	}
}

func TestTextLeavesOutImpliedTimes(t *testing.T) {
	b, err := batch.ParseText("a 1 5\nb 2 6\nc 3\n", batch.TextOptions{T: 5})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{5, 6, 5}, b.T); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if got, want := string(batch.AppendTextAt(nil, b, 5)), "a 1\nb 2 6\nc 3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The text on the left is parsed and written again. The text on the right is
// the result.
func TestTextForm(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		b, err := batch.ParseText(in, batch.TextOptions{T: 9})
		if err != nil {
			t.Errorf("cannot parse %q: %v", in, err)
			return
		}
		if got := string(batch.AppendTextAt(nil, b, 9)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", in, got, want)
		}
	}

	// series
	f("up 1", "up 1\n")
	f("up{} 1\r\n", "up 1\n")
	f(" up { b = \"2\" , a=\"1\" , } 1 ", "up{a=\"1\",b=\"2\"} 1\n")
	f("{} 1", "{} 1\n")
	f(`{"up",a="x"} 1`, `up{a="x"} 1`+"\n")
	f(`{"my.name","my label"="x"} 1`, `{"my.name","my label"="x"} 1`+"\n")
	f(`{a="1"} 1`, `{a="1"} 1`+"\n")
	f(`a{x="",y="\x41\u00e9\n"} 1`, `a{y="Aé\n"} 1`+"\n")

	// values
	f("a +Inf\na -Inf\na 1e3\na -0\na 0x1p-2", "a +Inf\na -Inf\na 1000\na -0\na 0.25\n")
	f("a NaN\na nan\na stale\na NaN(0x7ff8000000000000)", "a NaN\na NaN\na stale\na NaN(0x7ff8000000000000)\n")

	// times, start timestamps, exemplars
	f("a 1 -5 st@3", "a 1 -5 st@3\n")
	f("a 1 st@3", "a 1 st@3\n")
	f(`a 1 # {b="2",a="1"} 0.5 7 # {} 1`, `a 1 # {a="1",b="2"} 0.5 7 # {} 1`+"\n")

	// histograms
	f("h {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 4", "h {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]} 4\n")
	f("h { count : 3 , negative_buckets : [ 1 , 2 ] , negative_spans : [ -1:1, 3:1 ] }", "h {count:3,negative_spans:[-1:1,3:1],negative_buckets:[1,2]}\n")
	f(`h{a="1"} {counts:float,count:0.5,reset:gauge}`, `h{a="1"} {counts:float,count:0.5,reset:gauge}`+"\n")
	f("h {count:1,schema:-53,custom_values:[0.1,5],positive_spans:[0:1],positive_buckets:[1]}", "h {count:1,schema:-53,custom_values:[0.1,5],positive_spans:[0:1],positive_buckets:[1]}\n")
	f("h {count:0,sum:stale}", "h {count:0,sum:stale}\n")
	f("h {sum:0}", "h {count:0}\n")

	// metadata
	f("# a comment\n\n# EOF\n#\na 1", "a 1\n")
	f("# HELP a b \\\\ c\\n\n# TYPE a untyped\n# UNIT a bytes\na 1", "# TYPE a unknown\n# HELP a \"b \\\\ c\\n\"\n# UNIT a bytes\na 1\n")
	f("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 2\nother_sum 3", "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 2\nother_sum 3\n")
	f("# TYPE a_total counter\na_total 1\n# TYPE a_total -\na_total 1", "# TYPE a_total counter\na_total 1\n# TYPE a_total -\na_total 1\n")
	f("# TYPE a counter\na_total 1", "# TYPE a_total counter\na_total 1\n")
	f("# TYPE a gauge\na 1\n# HELP a x\na 1", "# TYPE a gauge\na 1\n# TYPE a -\n# TYPE a gauge\n# HELP a x\na 1\n")
	f("# HELP a \"quoted\" part\na 1", "# HELP a \"\\\"quoted\\\" part\"\na 1\n")
}

func TestTextHandles(t *testing.T) {
	text := "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"1\"} 2\n"
	b, err := batch.ParseText(text, batch.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Series[0] != b.Series[1] {
		t.Error("one series got two handles")
	}

	// handles from the caller
	in := batch.NewInterner(0)
	o := batch.TextOptions{Series: func(ls []batch.Label, m *batch.Metadata) *batch.Series { return in.Intern(ls, m, epoch) }}
	x, err := batch.ParseText(text, o)
	if err != nil {
		t.Fatal(err)
	}
	y, err := batch.ParseText(text, o)
	if err != nil {
		t.Fatal(err)
	}
	if x.Series[0] != y.Series[1] || x.Series[0].Meta().Type != "gauge" {
		t.Errorf("got %v and %v with metadata %v", x.Series[0], y.Series[1], x.Series[0].Meta())
	}
}

func TestTextMistakes(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		b, err := batch.ParseText(in, batch.TextOptions{})
		if err == nil {
			t.Errorf("%q: no error, got %s", in, batch.AppendText(nil, b))
		} else if err.Error() != want {
			t.Errorf("%q: got %q, want %q", in, err, want)
		}
	}

	f("a 1\n1a 2", `2:1: want a series, have "1a 2"`)
	f("a", `1:2: want a value, have ""`)
	f("a one", `1:3: want a value, have "one"`)
	f("a 1_0", `1:3: want a value, have "1_0"`)
	f("a NaN(0x1)", `1:3: want a value, have "NaN(0x1)"`)
	f("a 1 2.5", `1:5: want a time in Unix ms, have "2.5"`)
	f("a 1 2 3", `1:7: unexpected "3" after the value`)
	f("a 1 st@x", `1:8: want a time in Unix ms, have "x"`)
	f("a{b=1} 1", `1:5: want a string in double quotes`)
	f("a{b 1} 1", `1:5: want = after label b`)
	f(`a{b="1" c="2"} 1`, `1:9: want , or } after label b`)
	f(`a{b="\d"} 1`, `1:5: bad string "\d"} 1`)
	f(`a{b="1`, `1:5: bad string "1`)
	f(`a{b="1",b="2"} 1`, `1:1: label b appears twice`)
	f(`a{__name__="b"} 1`, `1:1: label __name__ appears twice`)
	f(`a{1="b"} 1`, `1:3: want a label name`)
	f("a 1 # x", `1:7: want { of an exemplar's labels`)
	f(`a 1 # {a="1",a="2"} 1`, `1:7: label a appears twice`)
	f(`a 1 # {"a"} 1`, `1:11: want = after label a`)
	f(`a 1 # {} x`, `1:10: want an exemplar's value, have "x"`)
	f("# TYPE a thing", `1:10: unknown metric type "thing"`)
	f("# TYPE 1 gauge", `1:8: want a metric name after TYPE`)
	f("h {count:1", `1:3: want } at the end of a histogram`)
	f("h {count:1.5}", `1:10: count is a whole number; counts:float says that counts are floats`)
	f("h {count:1,size:2,depth:3}", `1:25: a histogram has no depth`)
	f("h {count:1,count:2}", `1:12: count appears twice`)
	f("h {count:1 sum:2}", `1:10: count is a whole number; counts:float says that counts are floats`)
	f("h {count:1,positive_spans:[0:2],positive_buckets:[1]}", `1:3: positive_spans are for 2 buckets, positive_buckets has 1`)
	f("h {count:1,positive_spans:[0]}", `1:27: positive_spans is a list of offset:length`)
	f("h {count:1,positive_spans:0}", `1:27: positive_spans is a list in square brackets`)
	f("h {counts:half}", `1:11: counts are int or float`)
	f("h {count:1,reset:maybe}", `1:18: reset is unknown, yes, no or gauge`)
	f("h {count:1,custom_values:[x]}", `1:26: custom_values is a list of numbers`)
	f("h {count:1,sum:x}", `1:16: sum is a number`)
	f("h {count:1,schema:x}", `1:19: schema is a whole number`)
}

func FuzzParseText(f *testing.F) {
	f.Add(scrapeBody(3))
	for seed := range uint64(20) {
		f.Add(string(batch.AppendText(nil, newRandom(seed).metrics(5))))
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := batch.ParseText(text, batch.TextOptions{})
		if err != nil {
			return
		}
		once := batch.AppendText(nil, b)
		again, err := batch.ParseText(string(once), batch.TextOptions{})
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, once)
		}
		if diff := cmp.Diff(b, again, same); diff != "" {
			t.Fatalf("(-first +second)\n%s\n%s", diff, once)
		}
	})
}

func ExampleParseText() {
	b, err := batch.ParseText(`
# TYPE http_requests_total counter
http_requests_total{path="/",job="api"} 12
latency_seconds{job="api"} {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]}
gone{job="api"} stale
`, batch.TextOptions{T: 1700000000000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Len(), b.Series[0].Label("path"), b.Series[0].Meta().Type, batch.IsStale(b.V[2]))
	fmt.Print(string(batch.AppendTextAt(nil, b, 1700000000000)))
	// Output:
	// 3 / counter true
	// # TYPE http_requests_total counter
	// http_requests_total{job="api",path="/"} 12
	// latency_seconds{job="api"} {count:3,sum:1.5,schema:3,positive_spans:[0:2],positive_buckets:[1,2]}
	// gone{job="api"} stale
}
