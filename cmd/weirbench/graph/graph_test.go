package graph

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	f := func(want string, width int, ys ...float64) {
		t.Helper()
		l := Line{}
		for i, y := range ys {
			if !math.IsNaN(y) {
				l.Points = append(l.Points, Point{X: 10 + float64(i), Y: y})
			}
		}
		if got := l.Text(width); got != want {
			t.Errorf("%v in %d: got %q, want %q", ys, width, got, want)
		}
	}
	f("", 5)
	f("", 0, 1)
	f("█    ", 5, 3)
	f("▁▁", 2, 0, 0)
	f("▁▃▅▇█", 5, 0, 2, 4, 6, 8)
	f("▅█", 2, 1, 4, 2, 3, 8, 0)
	f("█  █", 4, 1, math.NaN(), math.NaN(), 1)
}

func TestSVG(t *testing.T) {
	var b strings.Builder
	err := SVG(&b, "RSS <1>", "MB", Line{"weir & co", []Point{{0, 0}, {10, 90}}}, Line{"other", []Point{{20, 45}}})
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, &b)
		}
	}
	// 100 MB at the top, time from 0 to 20 s.
	for _, want := range []string{"RSS &lt;1&gt;", "weir &amp; co", "100 MB<", ">20 s<", `points="70.0,210.0 390.0,48.0 "`, `points="710.0,129.0 "`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := SVG(&b, "nothing", "MB"); err != nil || !strings.Contains(b.String(), "</svg>") {
		t.Errorf("without lines: %v", err)
	}
}

func TestNice(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 3: 4, 4.5: 5, 51: 80, 81: 100, 187: 200, 1000: 1000} {
		if got := roundUp(v); got != want {
			t.Errorf("nice(%g) = %g, want %g", v, got, want)
		}
	}
}
