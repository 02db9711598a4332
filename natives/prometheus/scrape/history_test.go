package scrape

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// dice are choices that are read from bytes, so that a fuzz test can make them.
// When the bytes are used up, each choice is 0.
type dice struct{ left []byte }

// n returns a number below most.
func (d *dice) n(most int) int {
	v := 0
	for m := 1; m < most; m <<= 8 {
		if len(d.left) > 0 {
			v, d.left = v<<8|int(d.left[0]), d.left[1:]
		}
	}
	return v % max(most, 1)
}

// page is a body that is edited line by line. Each line includes its line feed.
type page struct {
	om    bool
	lines []string
}

func newPage(om bool, body []byte) *page {
	return &page{om: om, lines: strings.SplitAfter(string(body), "\n")}
}

func (p *page) body() []byte { return []byte(strings.Join(p.lines, "")) }

// sampleLine is a sample line, split into the parts that textparse distinguishes.
type sampleLine struct{ name, labels, space, value, rest string }

func (s sampleLine) String() string { return s.name + s.labels + s.space + s.value + s.rest }

// cutSample splits a line. ok is false if it is not a sample line.
func cutSample(line string) (s sampleLine, ok bool) {
	i := strings.IndexAny(line, "{ \t\n")
	if i < 0 || strings.HasPrefix(line, "#") || line[i] == '\n' {
		return s, false
	}
	s.name, line = line[:i], line[i:]
	if line[0] == '{' {
		quoted := false
		end := strings.IndexFunc(line, func(r rune) bool {
			if r == '"' {
				quoted = !quoted
			}
			return r == '}' && !quoted
		})
		if end < 0 {
			return s, false
		}
		s.labels, line = line[:end+1], line[end+1:]
	}
	value := strings.TrimLeft(line, " \t")
	s.space = line[:len(line)-len(value)]
	if i = strings.IndexAny(value, " \t\n"); i < 0 {
		i = len(value)
	}
	s.value, s.rest = value[:i], value[i:]
	return s, s.value != ""
}

// line chooses a line.
func (p *page) line(d *dice) int { return d.n(len(p.lines)) }

// sample edits the next sample at or after a chosen line.
func (p *page) sample(d *dice, edit func(*sampleLine)) {
	from := p.line(d)
	for i := range p.lines {
		at := (from + i) % len(p.lines)
		if s, ok := cutSample(p.lines[at]); ok {
			edit(&s)
			p.lines[at] = s.String()
			return
		}
	}
}

// samples edits every nth sample.
func (p *page) samples(n int, edit func(*sampleLine)) {
	seen := 0
	for i, l := range p.lines {
		if s, ok := cutSample(l); ok {
			if seen++; seen%max(n, 1) == 0 {
				edit(&s)
				p.lines[i] = s.String()
			}
		}
	}
}

// metadata edits the next metadata line at or after a chosen line.
func (p *page) metadata(d *dice, edit func(string) string) {
	from := p.line(d)
	for i := range p.lines {
		at := (from + i) % len(p.lines)
		if l := p.lines[at]; strings.HasPrefix(l, "# ") && l != "# EOF\n" {
			p.lines[at] = edit(l)
			return
		}
	}
}

// feed inserts text before the line feed of a line.
func feed(line, text string) string {
	if s, ok := strings.CutSuffix(line, "\n"); ok {
		return s + text + "\n"
	}
	return line + text
}

// title toggles the case of the first letter of a line.
func title(line string) string {
	if line == "" {
		return ""
	}
	return string(line[0]^0x20) + line[1:]
}

func randomValue(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return fmt.Sprint(r.NormFloat64())
	case 1:
		return []string{"NaN", "+Inf", "-Inf", "0", "-0", "1e+06"}[r.IntN(6)]
	}
	return fmt.Sprint(r.Uint64() >> r.IntN(60))
}

// Texts that operations insert into bodies.
var (
	insertedLines = []string{
		"\n", " \n", "#\n", "# a comment\n", "#HELP a b\n", "# TYPE\n", "# EOF\n", "new_series 1\n", "new_series{a=\"b\"} 2\n", "new_series{a=\"b\",} 2\n",
		"{\"quoted.name\",a=\"b\"} 3\n", "new_series{a=\"b\\\"c\\\\d\\ne\"} 4\n", "new_series{a=\"b\nc\"} 4\n", "new_series 5 1694005020123\n", "new_series 5 1694005020.123\n",
		"new_series 6 # {id=\"x\"} 0.5\n", "# TYPE new_series counter\n", "# TYPE new_series histogram\n", "# HELP new_series Something \\n new.\n", "# UNIT new_series_seconds seconds\n",
		"new_series_bucket{le=\"1\"} 1\n", "new_series_total 1\n", "new_series_created 1.6e9\n", "a\x00b 1\n", "a{b=\"\xff\"} 1\n", "1 1\n", "a{b=c} 1\n", "a{ b = \"c\" , d=\"e\" } 1\n",
	}
	inLabels = []string{`\\`, `\"`, `\n`, "\n", `\x`, `{`, `}`, `,`, `=`, `#`, ` `, "\t", "ü", "\xff", "\x00", `"`, `",x="y`}
	atEnds   = []string{" ", "\t", "\r", " # {id=\"1\"} 1", " # {id=\"1\",b=\"2\"} 0.5 1694005020.1", " # {} 1", " #", " # x", " 1", " 1694005020123", " 1694005020.123", " -1", " x", "\x00", ";"}
	blanks   = []string{"", " ", "  ", "\t", " \t "}
	types    = []string{"counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "stateset", "gaugehistogram", "nothing", ""}
)

// operation changes a page as targets, proxies and attackers do.
type operation struct {
	name string
	do   func(p *page, d *dice)
}

func (op operation) play(p *page, d *dice) {
	op.do(p, d)
	if len(p.lines) == 0 {
		p.lines = []string{""}
	}
}

var operations = []operation{
	{"other values", func(p *page, d *dice) {
		r := rand.New(rand.NewPCG(uint64(d.n(1<<16)), 1))
		p.samples(1, func(s *sampleLine) { s.value = randomValue(r) })
	}},
	{"some values", func(p *page, d *dice) {
		r := rand.New(rand.NewPCG(uint64(d.n(1<<16)), 2))
		p.samples(1+d.n(8), func(s *sampleLine) { s.value = randomValue(r) })
	}},
	{"odd value", func(p *page, d *dice) {
		v := valueSeeds[d.n(len(valueSeeds))]
		p.sample(d, func(s *sampleLine) { s.value = v })
	}},
	{"move", func(p *page, d *dice) {
		i, n := p.line(d), 1+d.n(5)
		moved := slices.Clone(p.lines[i:min(i+n, len(p.lines))])
		p.lines = slices.Delete(p.lines, i, i+len(moved))
		p.lines = slices.Insert(p.lines, d.n(len(p.lines)+1), moved...)
	}},
	{"swap", func(p *page, d *dice) {
		i, j := p.line(d), p.line(d)
		p.lines[i], p.lines[j] = p.lines[j], p.lines[i]
	}},
	{"drop", func(p *page, d *dice) {
		i, n := p.line(d), 1+d.n(20)
		p.lines = slices.Delete(p.lines, i, min(i+n, len(p.lines)))
	}},
	{"drop some", func(p *page, d *dice) {
		n, i := 2+d.n(20), 0
		p.lines = slices.DeleteFunc(p.lines, func(string) bool { i++; return i%n == 0 })
	}},
	{"insert", func(p *page, d *dice) {
		p.lines = slices.Insert(p.lines, p.line(d), insertedLines[d.n(len(insertedLines))])
	}},
	{"repeat", func(p *page, d *dice) {
		p.lines = slices.Insert(p.lines, p.line(d), p.lines[p.line(d)])
	}},
	{"end of a line", func(p *page, d *dice) {
		i := p.line(d)
		p.lines[i] = feed(p.lines[i], atEnds[d.n(len(atEnds))])
	}},
	{"ends of some lines", func(p *page, d *dice) {
		n, text := 1+d.n(9), atEnds[d.n(len(atEnds))]
		for i := range p.lines {
			if i%n == 0 {
				p.lines[i] = feed(p.lines[i], text)
			}
		}
	}},
	{"exemplar", func(p *page, d *dice) {
		i := d.n(100)
		p.sample(d, func(s *sampleLine) {
			s.rest = feed("\n", fmt.Sprintf(" # {id=\"%d\"} %d.5", i, i))
			if i%3 == 0 {
				s.rest = feed(s.rest, " 1694005020.25")
			}
		})
	}},
	{"timestamp", func(p *page, d *dice) {
		t := []string{" 1694005020123", " 1694005020.123", " 0", " -1", " 9999999999999", " 99999999999999999999", " 1e3", ""}[d.n(8)]
		p.sample(d, func(s *sampleLine) { s.rest = t + "\n" })
	}},
	{"timestamps", func(p *page, d *dice) {
		t := 999_999_000_000 + 20*d.n(1<<16) // some too far ahead
		p.samples(1+d.n(3), func(s *sampleLine) {
			t++
			s.rest = fmt.Sprintf(" %d\n", t)
			if p.om {
				s.rest = fmt.Sprintf(" %d.%03d\n", t/1000, t%1000)
			}
		})
	}},
	{"no timestamps", func(p *page, d *dice) { p.samples(1+d.n(3), func(s *sampleLine) { s.rest = "\n" }) }},
	{"break", func(p *page, d *dice) {
		if i := p.line(d); p.lines[i] != "" {
			b := []byte(p.lines[i])
			b[d.n(len(b))] = byte(d.n(256))
			p.lines[i] = string(b)
		}
	}},
	{"truncate", func(p *page, d *dice) {
		b := p.body()
		p.lines = newPage(p.om, b[:d.n(len(b)+1)]).lines
	}},
	{"case", func(p *page, d *dice) {
		i := p.line(d)
		p.lines[i] = [...]func(string) string{strings.ToUpper, strings.ToLower, title}[d.n(3)](p.lines[i])
	}},
	{"CRLF", func(p *page, d *dice) {
		i := p.line(d)
		p.lines[i] = strings.Replace(p.lines[i], "\n", "\r\n", 1)
	}},
	{"CRLF everywhere", func(p *page, d *dice) {
		p.lines = newPage(p.om, bytes.ReplaceAll(p.body(), []byte("\n"), []byte("\r\n"))).lines
	}},
	{"in a label", func(p *page, d *dice) {
		text, at := inLabels[d.n(len(inLabels))], d.n(256)
		p.sample(d, func(s *sampleLine) {
			if s.labels == "" {
				s.labels = `{x=""}`
			}
			at := 1 + at%(len(s.labels)-1)
			s.labels = s.labels[:at] + text + s.labels[at:]
		})
		p.lines = newPage(p.om, p.body()).lines
	}},
	{"labels in another order", func(p *page, d *dice) {
		p.sample(d, func(s *sampleLine) {
			if ls := strings.Split(strings.Trim(s.labels, "{}"), `",`); len(ls) > 1 && !strings.HasSuffix(ls[len(ls)-1], ",") {
				ls[len(ls)-1] = strings.TrimSuffix(ls[len(ls)-1], `"`)
				slices.Reverse(ls)
				s.labels = "{" + strings.Join(ls, `",`) + `"}`
			}
		})
	}},
	{"name in quotes", func(p *page, d *dice) {
		p.sample(d, func(s *sampleLine) {
			s.labels = strings.TrimSuffix(`{"`+s.name+`",`+strings.Trim(s.labels, "{}"), ",") + "}"
			s.name = ""
		})
	}},
	{"white space", func(p *page, d *dice) {
		b, where := blanks[d.n(len(blanks))], d.n(4)
		p.sample(d, func(s *sampleLine) {
			switch where {
			case 0:
				s.name = b + s.name
			case 1:
				s.name += b
			case 2:
				s.space = b
			case 3:
				s.rest = b + s.rest
			}
		})
	}},
	{"rename", func(p *page, d *dice) {
		text := fmt.Sprint(d.n(1000))
		p.sample(d, func(s *sampleLine) { s.name += "_" + text })
	}},
	{"rename some", func(p *page, d *dice) {
		text := fmt.Sprintf(`{generation="%d"`, d.n(1000))
		p.samples(2+d.n(20), func(s *sampleLine) {
			if rest := strings.TrimPrefix(s.labels, "{"); rest != "" && rest != "}" {
				s.labels = text + "," + rest
			} else {
				s.labels = text + "}"
			}
		})
	}},
	{"type", func(p *page, d *dice) {
		t := types[d.n(len(types))]
		p.metadata(d, func(l string) string {
			f := append(strings.Fields(l), "", "")
			return "# TYPE " + f[2] + " " + t + "\n"
		})
	}},
	{"help", func(p *page, d *dice) {
		text := fmt.Sprint(d.n(1000))
		p.metadata(d, func(l string) string { return feed(l, " "+text) })
	}},
	{"no metadata", func(p *page, d *dice) {
		p.lines = slices.DeleteFunc(p.lines, func(l string) bool { return strings.HasPrefix(l, "# ") && l != "# EOF\n" })
	}},
	{"end of the body", func(p *page, d *dice) {
		switch b := p.body(); d.n(4) {
		case 0:
			p.lines = newPage(p.om, bytes.TrimSuffix(b, []byte("\n"))).lines
		case 1:
			p.lines = newPage(p.om, bytes.TrimSuffix(b, []byte("# EOF\n"))).lines
		case 2:
			p.lines = append(p.lines, "# EOF\n")
		default:
			p.lines = append(p.lines, insertedLines[d.n(len(insertedLines))])
		}
	}},
	{"join", func(p *page, d *dice) {
		i := p.line(d)
		p.lines[i] = strings.TrimSuffix(p.lines[i], "\n")
	}},
	{"bytes", func(p *page, d *dice) {
		b := p.body()
		at := d.n(max(1<<16, len(b))) % (len(b) + 1)
		del := min(d.n(256), len(b)-at)
		ins := min(d.n(256), len(d.left))
		b = slices.Replace(b, at, at+del, d.left[:ins]...)
		d.left = d.left[ins:]
		p.lines = newPage(p.om, b).lines
	}},
	{"nothing", func(p *page, d *dice) { p.lines = []string{""} }},
}

// show is the event of one scrape of a target.
type show struct {
	body    []byte // nil if the scrape fails
	om      bool
	patient int  // number of bodies until the cache is packed
	forget  bool // the meaning of lines changed before the scrape
	what    string
}

func (s show) contentType() string {
	if s.om {
		return omType
	}
	return textType
}

// history applies operations, chosen by plan, to a body. After some operations,
// the target is scraped once or more; then the changes stay or the body is reset
// to its previous or first content.
func history(om bool, first, plan []byte) (out []show) {
	const most = 40 // number of scrapes
	d := &dice{left: plan}
	add := func(p *page, what string) {
		out = append(out, show{body: p.body(), om: p.om, patient: 3, what: what})
	}
	was := newPage(om, first)
	add(was, "first")
	add(was, "again")
	for len(d.left) > 0 && len(out) < most {
		p := newPage(was.om, was.body())
		var what []string
		for range 1 + d.n(3) {
			op := operations[d.n(len(operations))]
			op.play(p, d)
			what = append(what, op.name)
		}
		for i := range 1 + d.n(4) {
			if i > 0 && d.n(2) == 1 {
				operations[0].play(p, d)
			}
			add(p, strings.Join(what, ", "))
		}
		s := &out[len(out)-1]
		switch d.n(16) {
		case 0:
			s.body = nil
		case 1:
			s.om = !s.om
		case 2:
			s.forget = true
		case 3:
			s.patient = 0
		}
		switch d.n(4) {
		case 0:
			was = p
		case 1:
			was = newPage(om, first)
			add(was, "first")
		default:
			add(was, "undone")
		}
	}
	return out
}

// randomPlan returns a plan that a fuzz test might create.
func randomPlan(r *rand.Rand) []byte {
	plan := make([]byte, 20+r.IntN(140))
	for i := range plan {
		plan[i] = byte(r.Uint32())
	}
	return plan
}

// TestOperations: each operation changes some body, and is deterministic.
func TestOperations(t *testing.T) {
	bodies := [][]byte{[]byte(corpus(t, "kube_state.txt").body), []byte(corpus(t, "exemplars.om.txt").body)}
	for _, op := range operations {
		r := rand.New(rand.NewPCG(1, 2))
		changed := 0
		for i := range 100 {
			plan, b := randomPlan(r), bodies[i%2]
			p, again := newPage(i%2 == 1, b), newPage(i%2 == 1, b)
			op.play(p, &dice{left: plan})
			op.play(again, &dice{left: plan})
			if !bytes.Equal(p.body(), again.body()) {
				t.Fatalf("%s is not the same twice", op.name)
			}
			if !bytes.Equal(p.body(), b) {
				changed++
			}
		}
		if changed < 10 {
			t.Errorf("%s changed %d of 100 bodies", op.name, changed)
		}
	}
}
