package top

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// column is a column of the table.
type column struct {
	sort, title string
	width       int
	value       func(Node) float64 // nil for the name
	text        func(Node) string
	wide        bool // only in a wide table
}

// columns are the columns, in the order in which they are removed if the table is too
// narrow, the last first. The name is the first.
var columns = []column{
	{sort: "name", title: "NODE"},
	{sort: "cpu", title: "CPU%", width: 6, value: func(n Node) float64 { return n.CPU }, text: func(n Node) string { return fmt.Sprintf("%.1f", n.CPU) }},
	number("calls", "CALL/s", func(n Node) float64 { return n.Calls }),
	number("records", "REC/s", Node.Records),
	number("bytes", "BYTE/s", Node.Bytes),
	number("dropped", "DROP/s", func(n Node) float64 { return n.Dropped }),
	number("lost", "LOST/s", func(n Node) float64 { return n.Lost }),
	number("errors", "ERR/s", func(n Node) float64 { return n.Errors }),
	number("queue", "QUEUE", func(n Node) float64 { return float64(n.Queue) }),
	wide(column{sort: "age", title: "AGE", width: 6, value: func(n Node) float64 { return n.Age }, text: func(n Node) string { return age(n.Age) }}),
	wide(number("out", "OUT/s", func(n Node) float64 { return n.RecordsOut })),
}

func number(sort, title string, value func(Node) float64) column {
	return column{sort: sort, title: title, width: 6, value: value, text: func(n Node) string { return short(value(n)) }}
}

func wide(c column) column {
	c.wide = true
	return c
}

// Sorts returns the columns by which a table can be sorted.
func Sorts() (names []string) {
	for _, c := range columns[1:] {
		names = append(names, c.sort)
	}
	return append(names, columns[0].sort)
}

func columnOf(sort string) column {
	for _, c := range columns {
		if c.sort == sort {
			return c
		}
	}
	return columns[0]
}

const (
	// minName is the width of names for which other columns are removed, and goodName
	// the width below which a table has no wide columns.
	minName, goodName = 16, 32
)

// fitting returns the columns that fit into a width, and the width of the name.
func fitting(width int) (cols []column, name int) {
	name = width
	for _, c := range columns[1:] {
		least := minName
		if c.wide {
			least = goodName
		}
		if name-c.width-1 < least {
			break
		}
		name -= c.width + 1
		cols = append(cols, c)
	}
	return cols, name
}

// mark precedes the name of a node that is not healthy.
const mark = "! "

// heading returns the first line of a table; sorted is the column in reverse video, or
// "" for none.
func heading(cols []column, name int, sorted string) string {
	line := cell(columns[0].title, name, false)
	if sorted == columns[0].sort {
		line = reverseVideo(line)
	}
	for _, c := range cols {
		text := cell(c.title, c.width, true)
		if c.sort == sorted {
			text = reverseVideo(text)
		}
		line += " " + text
	}
	return line
}

// row returns the line of a node.
func row(n Node, cols []column, name int, cpuKnown bool) string {
	id, room := printable(n.ID), name
	if n.sick() {
		room -= len(mark)
	}
	if over := ansi.StringWidth(id) - room; over > 0 { // its end tells nodes apart
		id = ansi.TruncateLeft(id, over+1, "…")
	}
	if n.sick() {
		id = mark + id
	}
	line := cell(id, name, false)
	for _, c := range cols {
		text := c.text(n)
		if c.sort == "cpu" && !cpuKnown {
			text = "-"
		}
		line += " " + cell(text, c.width, true)
	}
	return line
}

// cell returns text with a width.
func cell(text string, width int, right bool) string {
	text = ansi.Truncate(text, width, "…")
	space := strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
	if right {
		return space + text
	}
	return text + space
}

func reverseVideo(text string) string { return "\x1b[7m" + text + "\x1b[0m" }

// short returns a number with at most 6 characters.
func short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	case v < 999.5:
		return fmt.Sprintf("%.0f", v)
	}
	for _, unit := range []string{"k", "M", "G", "T"} {
		if v /= 1000; v < 99.95 {
			return fmt.Sprintf("%.1f%s", v, unit)
		} else if v < 999.5 {
			return fmt.Sprintf("%.0f%s", v, unit)
		}
	}
	return fmt.Sprintf("%.0e", v*1e12)
}

// age returns a duration with at most 6 characters.
func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case seconds == 0:
		return "-"
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}

// summary describes the process.
func (r Rates) summary() string {
	cpu := fmt.Sprintf("CPU %.1f%%, %.1f%% of it outside of nodes", r.CPU, r.OtherCPU)
	if r.CPUError != "" {
		cpu = "CPU is unknown: " + printable(r.CPUError)
	}
	return fmt.Sprintf("%d nodes, %s, over %.1fs", len(r.Nodes), cpu, r.Seconds)
}

// Write writes all columns as a plain table. It does not shorten names.
func Write(w io.Writer, r Rates, v View) error {
	nodes := v.Nodes(r.Nodes)
	name := len(columns[0].title)
	for _, n := range nodes {
		name = max(name, ansi.StringWidth(mark+printable(n.ID)))
	}
	lines := []string{r.summary(), heading(columns[1:], name, "")}
	for _, n := range nodes {
		lines = append(lines, row(n, columns[1:], name, r.CPUError == ""))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
