// Package graph draws small graphs of values over time: as one line of text and
// as SVG. They are for reports, not for dashboards.
package graph

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Point is a value at a time, in seconds.
type Point struct{ X, Y float64 }

// Line is one line of a graph. Its points are sorted by time.
type Line struct {
	Name   string
	Points []Point
}

// Text returns the line as width characters of eight heights between 0 and the
// highest value. Each shows the highest value of its part of the time; a part
// without points is a space.
func (l Line) Text(width int) string {
	if len(l.Points) == 0 || width < 1 {
		return ""
	}
	from, to := l.Points[0].X, l.Points[len(l.Points)-1].X
	parts := make([]float64, width)
	for i := range parts {
		parts[i] = math.NaN()
	}
	top := 0.0
	for _, p := range l.Points {
		i := 0
		if to > from {
			i = min(int((p.X-from)/(to-from)*float64(width)), width-1)
		}
		if !(parts[i] >= p.Y) { // also true for NaN
			parts[i] = p.Y
		}
		top = max(top, p.Y)
	}
	var b strings.Builder
	for _, v := range parts {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case top <= 0:
			b.WriteRune('▁')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(int(max(v, 0)/top*8), 7)])
		}
	}
	return b.String()
}

// Size of an SVG, and of the margins for axes.
const (
	width, height = 720, 240
	left, bottom  = 70, 30
	top, right    = 30, 10
)

var colours = [...]string{"#1f6f8b", "#c8553d", "#588157", "#7b5ea7", "#b08900"}

// SVG writes the lines with a common time axis and a common value axis that
// starts at 0. unit is the unit of the values.
func SVG(w io.Writer, title, unit string, lines ...Line) error {
	var from, to, most float64
	first := true
	for _, l := range lines {
		for _, p := range l.Points {
			if first {
				from, to, first = p.X, p.X, false
			}
			from, to, most = min(from, p.X), max(to, p.X), max(most, p.Y)
		}
	}
	most, to = roundUp(most), max(to, from+1)
	x := func(v float64) float64 { return left + (v-from)/(to-from)*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - v/most*(height-top-bottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11"><rect width="100%%" height="100%%" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="16" font-size="13">%s</text>`+"\n", left, html.EscapeString(title))
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g %s</text>`+"\n", left, y(v), width-right, left-6, y(v)+4, v, html.EscapeString(unit))
		at := from + (to-from)*float64(i)/4
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f s</text>`+"\n", x(at), height-bottom+16, at)
	}
	for i, l := range lines {
		c := colours[i%len(colours)]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, c)
		for _, p := range l.Points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(p.X), y(p.Y))
		}
		fmt.Fprintf(&b, `"/><text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", width-right, top+4+14*i, c, html.EscapeString(l.Name))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// roundUp returns a round number that is at least v.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 5, 8} {
		if m*unit >= v {
			return m * unit
		}
	}
	return 10 * unit
}
