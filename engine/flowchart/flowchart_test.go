package flowchart_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/service"
)

var update = flag.Bool("update", false, "rewrite the files that drawings are compared with")

// house is a chart with everything there is: frames in frames, edges into,
// out of and between them, references, a cycle, nodes alone.
func house() *flowchart.Chart {
	var c flowchart.Chart
	node := func(frame, name, label string) {
		c.Nodes = append(c.Nodes, flowchart.Node{ID: frame + name + "." + label, Name: name, Label: label, Class: "healthy"})
	}
	edge := func(from, to string, reference bool) {
		c.Edges = append(c.Edges, flowchart.Edge{From: from, To: to, Reference: reference})
	}
	node("", "discovery.docker", "all")
	node("", "app", "one")
	node("app.one/", "prometheus.scrape", "s")
	node("app.one/", "prometheus.relabel", "r")
	node("app.one/", "sub", "x")
	node("app.one/sub.x/", "expr.filter", "a")
	node("app.one/sub.x/", "expr.filter", "b")
	node("", "app", "two")
	node("app.two/", "prometheus.relabel", "r")
	node("", "prometheus.remote_write", "default")
	node("", "local.file", "password")
	node("", "a.cycle", "a")
	node("", "a.cycle", "b")
	c.Nodes = append(c.Nodes, flowchart.Node{ID: `<alone & "quoted">`, Name: `<alone & "quoted">`, Tip: "<tip>", Href: "/x?a=<&b"})
	edge("discovery.docker.all", "app.one", true)
	edge("discovery.docker.all", "app.one/prometheus.scrape.s", true)
	edge("app.one/prometheus.scrape.s", "app.one/prometheus.relabel.r", false)
	edge("app.one/prometheus.scrape.s", "app.one/sub.x/expr.filter.a", false)
	edge("app.one/sub.x/expr.filter.a", "app.one/sub.x/expr.filter.b", false)
	edge("app.one/sub.x/expr.filter.b", "app.two/prometheus.relabel.r", false)
	edge("app.one/prometheus.relabel.r", "prometheus.remote_write.default", false)
	edge("app.two/prometheus.relabel.r", "prometheus.remote_write.default", false)
	edge("local.file.password", "prometheus.remote_write.default", true)
	edge("a.cycle.a", "a.cycle.b", false)
	edge("a.cycle.b", "a.cycle.a", true)
	edge("app.one", "app.one/prometheus.scrape.s", true) // not drawn
	edge("gone", "app.one", true)                        // nor this
	return &c
}

func draw(t *testing.T, c *flowchart.Chart, o flowchart.SVGOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteSVG(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	var dot, mermaid bytes.Buffer
	if err := house().WriteDOT(&dot); err != nil {
		t.Fatal(err)
	}
	if err := house().WriteMermaid(&mermaid); err != nil {
		t.Fatal(err)
	}
	f := func(name, got string) {
		t.Helper()
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", name, diff)
		}
	}
	f("house.svg", draw(t, house(), flowchart.SVGOptions{}))
	f("house.dot", dot.String())
	f("house.mermaid", mermaid.String())
	if a, b := draw(t, house(), flowchart.SVGOptions{Rates: true}), draw(t, house(), flowchart.SVGOptions{Rates: true}); a != b {
		t.Error("two drawings of one chart differ")
	}
}

// rect is a box of a drawing.
type rect struct {
	id, class  string
	x, y, w, h float64
	texts      []text
}

type text struct {
	x, y, size float64
	s          string
}

// boxes reads an SVG.
func boxes(t *testing.T, svg string) (out []*rect, ends [][2][2]float64) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var cur *rect
	var line *text
	for {
		tok, err := d.Token()
		if tok == nil {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			a := map[string]string{}
			for _, at := range e.Attr {
				a[at.Name.Local] = at.Value
			}
			n := func(name string) float64 { f, _ := strconv.ParseFloat(a[name], 64); return f }
			switch {
			case e.Name.Local == "g":
				cur = &rect{id: a["data-id"], class: strings.Fields(a["class"])[0]}
				out = append(out, cur)
			case e.Name.Local == "rect" && cur != nil && cur.w == 0:
				cur.x, cur.y, cur.w, cur.h = n("x"), n("y"), n("width"), n("height")
			case e.Name.Local == "text":
				cur.texts = append(cur.texts, text{x: n("x"), y: n("y"), size: n("font-size")})
				line = &cur.texts[len(cur.texts)-1]
			case e.Name.Local == "path" && (a["class"] == "flow" || a["class"] == "reference"):
				nums := regexp.MustCompile(`-?[0-9.]+`).FindAllString(a["d"], -1)
				at := func(i int) float64 { f, _ := strconv.ParseFloat(nums[i], 64); return f }
				ends = append(ends, [2][2]float64{{at(0), at(1)}, {at(len(nums) - 2), at(len(nums) - 1)}})
			}
		case xml.CharData:
			if line != nil {
				line.s += string(e)
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				line = nil
			}
		}
	}
	return out, ends
}

// check checks the properties of every drawing: adjacent boxes do not touch,
// the content of a frame is inside it, text is inside its box (in a monospace
// font, 0.602 em wide), and edges begin and end at borders of boxes.
func check(t *testing.T, c *flowchart.Chart, o flowchart.SVGOptions) {
	t.Helper()
	rs, ends := boxes(t, draw(t, c, o))
	byID := map[string]*rect{}
	for _, r := range rs {
		byID[r.id] = r
		for _, s := range r.texts {
			if right := s.x + 0.602*s.size*float64(len([]rune(s.s))); right > r.x+r.w || s.x < r.x || s.y > r.y+r.h || s.y-s.size < r.y {
				t.Errorf("%s: the text %q ends at %.0f, the box at %.0f", r.id, s.s, right, r.x+r.w)
			}
		}
	}
	if len(byID) < len(c.Nodes) {
		t.Errorf("%d boxes of %d nodes", len(byID), len(c.Nodes))
	}
	for i, a := range rs {
		for _, b := range rs[i+1:] {
			inside := strings.HasPrefix(b.id, a.id+"/")
			if inside && (b.x < a.x || b.y < a.y || b.x+b.w > a.x+a.w || b.y+b.h > a.y+a.h) {
				t.Errorf("%s is not inside of %s", b.id, a.id)
			}
			around := inside || strings.HasPrefix(a.id, b.id+"/")
			if !around && a.x < b.x+b.w+4 && b.x < a.x+a.w+4 && a.y < b.y+b.h+4 && b.y < a.y+a.h+4 {
				t.Errorf("%s and %s touch", a.id, b.id)
			}
		}
	}
	at := func(p [2]float64) bool {
		for _, r := range rs {
			if p[1] > r.y-1 && p[1] < r.y+r.h+1 && (math.Abs(p[0]-r.x) < 9 || math.Abs(p[0]-r.x-r.w) < 9) {
				return true
			}
		}
		return false
	}
	for _, e := range ends {
		if !at(e[0]) || !at(e[1]) {
			t.Errorf("an edge from %v to %v is not between boxes", e[0], e[1])
		}
	}
}

func TestNothingOverlaps(t *testing.T) {
	check(t, house(), flowchart.SVGOptions{})
	check(t, house(), flowchart.SVGOptions{Rates: true, Inline: true})
	check(t, &flowchart.Chart{}, flowchart.SVGOptions{})
	for seed := range uint64(30) {
		c := random(rand.New(rand.NewPCG(seed, 1)), 5+int(seed)*4)
		check(t, c, flowchart.SVGOptions{Rates: seed%2 == 0})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// random returns a chart of n nodes with frames, cycles and long names.
func random(r *rand.Rand, n int) *flowchart.Chart {
	c := &flowchart.Chart{}
	frames := []string{"", ""}
	for i := range n {
		frame := frames[r.IntN(len(frames))]
		id := fmt.Sprintf("%scomponent.n%d", frame, i)
		c.Nodes = append(c.Nodes, flowchart.Node{ID: id, Name: "component", Label: strings.Repeat("n", 1+r.IntN(60)), Rates: "1.2M in · 1.2M out"})
		if r.IntN(8) == 0 && strings.Count(id, "/") < 3 {
			frames = append(frames, id+"/")
		}
	}
	for range n + r.IntN(n+1) {
		c.Edges = append(c.Edges, flowchart.Edge{From: c.Nodes[r.IntN(n)].ID, To: c.Nodes[r.IntN(n)].ID, Reference: r.IntN(3) == 0})
	}
	return c
}

// TestStraight: a chain is a straight line, and a node stands right of those it
// gets something from.
func TestStraight(t *testing.T) {
	c := &flowchart.Chart{}
	for i := range 6 {
		c.Nodes = append(c.Nodes, flowchart.Node{ID: fmt.Sprint(i), Name: fmt.Sprint(i)})
		if i > 0 {
			c.Edges = append(c.Edges, flowchart.Edge{From: fmt.Sprint(i - 1), To: fmt.Sprint(i)})
		}
	}
	rs, _ := boxes(t, draw(t, c, flowchart.SVGOptions{}))
	for i := range rs[1:] {
		if rs[i].y != rs[i+1].y || rs[i+1].x <= rs[i].x {
			t.Errorf("%s at %.0f, %.0f and %s at %.0f, %.0f", rs[i].id, rs[i].x, rs[i].y, rs[i+1].id, rs[i+1].x, rs[i+1].y)
		}
	}
}

func TestOf(t *testing.T) {
	got := flowchart.Of([]service.Info{
		{ID: "local.file.p", Name: "local.file"},
		{ID: "x.source.a", Name: "x.source", SendsTo: []string{"x.sink.b"}, DependsOn: []string{"x.sink.b", "local.file.p"}, Position: "c.alloy:3",
			Health: component.Health{State: component.Unhealthy, Message: "no target"}},
		{ID: "x.sink.b", Name: "x.sink"},
	}, []service.Info{{ID: "http", Name: "http", DependsOn: []string{"local.file.p"}}, {ID: "logging", Name: "logging"}})
	want := &flowchart.Chart{
		Nodes: []flowchart.Node{
			{ID: "local.file.p", Name: "local.file", Label: "p", Class: "unknown", Tip: "local.file.p"},
			{ID: "x.source.a", Name: "x.source", Label: "a", Class: "unhealthy", Tip: "x.source.a\nc.alloy:3\nunhealthy: no target"},
			{ID: "x.sink.b", Name: "x.sink", Label: "b", Class: "unknown", Tip: "x.sink.b"},
			{ID: "http", Name: "http", Class: "unknown", Tip: "http"},
		},
		Edges: []flowchart.Edge{
			{From: "x.source.a", To: "x.sink.b"},
			{From: "local.file.p", To: "x.source.a", Reference: true},
			{From: "local.file.p", To: "http", Reference: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSizes(t *testing.T) {
	for _, n := range []int{5, 50, 300} {
		check(t, random(rand.New(rand.NewPCG(7, 7)), n), flowchart.SVGOptions{})
	}
}

func BenchmarkSVG300(b *testing.B) {
	c := random(rand.New(rand.NewPCG(7, 7)), 300)
	for b.Loop() {
		if err := c.WriteSVG(new(bytes.Buffer), flowchart.SVGOptions{Rates: true}); err != nil {
			b.Fatal(err)
		}
	}
}
