package scrape

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// plainOf is the result of plain for the first line of a body.
type plainOf struct {
	Text   string
	Labels string
	V      uint64
	HasT   bool
	T      int64
}

func of(p textparse.Parser) (out plainOf) {
	text, t, v := p.Series()
	var ls labels.Labels
	p.Labels(&ls)
	out = plainOf{Text: string(text), Labels: ls.String(), V: math.Float64bits(v), HasT: t != nil}
	if t != nil {
		out.T = *t
	}
	return out
}

var plainSeeds = []string{
	"a 1\n", "a{b=\"c\"} 1\n", "a{b=\"c\",d=\"e\"} 1 1000\n", "a:b_c1{le=\"1\",a=\"ü\"} 1e3\nb 2\n", "a{b=\"\"} 1 1.5\n", "a{z=\"1\",a=\"2\",z=\"3\"} 1\n",
	"a{b=\"c\", d=\"e\"} 1\n", "a{b=\"c\", d=\"e\",f=\"g\", h=\"i\"} 1 1000\n", "a{b=\"c\",  d=\"e\"} 1\n", "a{b=\"c\",\td=\"e\"} 1\n", "a{b=\"c\" ,d=\"e\"} 1\n", "a{ b=\"c\"} 1\n", "a{b=\"c\", } 1\n", "a{b=\"c\", ", "a{b=\"c\",",
	"a{} 1\n", "a{b=\"c\",} 1\n", "a{b=\"c\" } 1\n", "a {b=\"c\"} 1\n", "a  1\n", "a\t1\n", " a 1\n", "a 1 \n", "a 1", "a", "", "\n", "{\"a\"} 1\n", "a{\"b\"=\"c\"} 1\n",
	"a{b=\"\\\"\"} 1\n", "a{b=\"\xff\"} 1\n", "a{b=\"\x00\"} 1\n", "a{b=\"\n\"} 1\n", "a{b=\"\x7f\"} 1\n", "1a 1\n", "a{1b=\"c\"} 1\n", "a{b:c=\"d\"} 1\n", "a{b=\"c\"}1\n", "a{b=\"c\";d=\"e\"} 1\n",
	"# TYPE a counter\n", "a # 1\n", "a 1 # {} 1\n", "a 1 2 3\n", "a{b=c} 1\n", "a{b=\"c} 1\n", "a{b=\"c\"", "a{b=\"", "a{b=", "a{", "a{b=\"c\",__name__=\"d\"} 1\n", "ä 1\n", "a\r\n",
}

// comparePlain compares the result of plain for the first line of a body, if
// plain accepts it, with that of textparse. It reports whether plain accepts it.
func comparePlain(t *testing.T, om bool, body []byte) bool {
	t.Helper()
	b := append(make([]byte, 0, len(body)+1), body...)
	f := textFormat
	if om {
		f = openMetricsFormat
	}
	l := plain{format: f}
	if !l.line(b, 0, (&layout{format: f}).variable) {
		return false
	}
	got := of(&l)
	p := f.parser(b)
	if et, err := p.Next(); err != nil || et != textparse.EntrySeries {
		t.Fatalf("openmetrics=%t: %q is plain, but textparse says %v, %v", om, body, et, err)
	}
	if d := cmp.Diff(of(p), got); d != "" {
		t.Fatalf("openmetrics=%t: %q (-textparse +plain)\n%s", om, body, d)
	}
	// textparse must continue after the line, too.
	rest := f.parser(b[nextLine(b, l.next):])
	et, err := p.Next()
	etRest, errRest := rest.Next()
	if et != etRest || errors.Is(err, io.EOF) != errors.Is(errRest, io.EOF) || (err == nil) != (errRest == nil) {
		t.Fatalf("openmetrics=%t: after the first line of %q comes %v, %v, from its end %v, %v", om, body, et, err, etRest, errRest)
	}
	return true
}

// FuzzPlain compares the results of plain and textparse for the first line of a
// body.
func FuzzPlain(f *testing.F) {
	for _, s := range plainSeeds {
		f.Add(true, []byte(s))
		f.Add(false, []byte(s))
	}
	f.Fuzz(func(t *testing.T, om bool, body []byte) { comparePlain(t, om, body) })
}

// TestPlain: plain agrees with textparse and accepts the lines of nearly all
// bodies.
func TestPlain(t *testing.T) {
	taken := 0
	for _, s := range plainSeeds {
		for _, om := range []bool{false, true} {
			if comparePlain(t, om, []byte(s)) {
				taken++
			}
		}
	}
	if taken < 10 {
		t.Errorf("%d of %d lines were taken", taken, 2*len(plainSeeds))
	}
	f := func(name string, want float64) {
		t.Helper()
		a := corpus(t, name)
		samples, taken := 0, 0
		for _, line := range newPage(false, []byte(a.body)).lines {
			if _, ok := cutSample(line); !ok {
				continue
			}
			samples++
			if comparePlain(t, a.contentType == omType, []byte(line)) {
				taken++
			}
		}
		if part := float64(taken) / float64(samples); part < want {
			t.Errorf("of %d samples in %s %d are plain", samples, name, taken)
		}
	}
	f("node_exporter.txt", 0.99)
	f("prometheus.txt", 1)
	f("timestamps.om.txt", 0.98)
	f("vmagent.txt", 0.99)
}
