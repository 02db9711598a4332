package natives_test

import (
	"fmt"
	"os"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/engine/service/telemetry"
	"github.com/weir-run/weir/natives"
	"github.com/weir-run/weir/natives/prometheus/echo"
	"github.com/weir-run/weir/natives/prometheus/relabel"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// known is a line of testdata/arguments.txt.
type known struct {
	path, line string // line in the format of described
	value      string
	verdict    string
	beside     bool // valid only together with every other argument
}

// sections returns the lines of testdata/arguments.txt by block.
func sections(t *testing.T) map[string][]known {
	t.Helper()
	text, err := os.ReadFile("testdata/arguments.txt")
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string][]string{}
	name := ""
	for _, line := range strings.Split(string(text), "\n") {
		if s, ok := strings.CutPrefix(line, "== "); ok {
			name = s
			raw[name] = nil
		} else if line != "" && line[0] != '#' {
			if k := parseKnown(line); k.value == "" && !strings.ContainsAny(line[:1], "+~") && !strings.Contains(k.line, " block") {
				t.Errorf("testdata/arguments.txt: section %s: %q has no value: add \" | \" and a value that is not the default", name, line)
			}
			raw[name] = append(raw[name], line)
		}
	}
	out := map[string][]known{}
	for name, lines := range raw {
		var ks []known
		for _, line := range lines {
			if include, ok := strings.CutPrefix(line, "+"); ok {
				section, prefix, _ := strings.Cut(include, " ")
				if raw[section] == nil {
					t.Fatalf("testdata/arguments.txt: section %s: there is no section %q", name, section)
				}
				for _, l := range raw[section] {
					ks = append(ks, parseKnown(prefix+l))
				}
				continue
			}
			if beside, ok := strings.CutPrefix(line, "~"); ok {
				path, value, _ := strings.Cut(beside, " = ")
				ks = append(ks, known{path: path, value: value, beside: true})
				continue
			}
			instead, replace := strings.CutPrefix(line, "!")
			k := parseKnown(instead)
			if !replace {
				ks = append(ks, k)
				continue
			}
			for i := range ks {
				if ks[i].path == k.path {
					ks[i] = k
				}
			}
		}
		out[name] = ks
	}
	return out
}

func parseKnown(line string) known {
	columns := append(strings.Split(line, " | "), "", "")
	if strings.Contains(line, "| |") { // a block without required arguments
		first, last, _ := strings.Cut(line, " | | ")
		columns = []string{first, "", last}
	}
	var k known
	// A default may contain the separator: the text up to the closing quote
	// belongs to it.
	for strings.Count(columns[0], `"`)%2 == 1 {
		columns = append([]string{columns[0] + " | " + columns[1]}, columns[2:]...)
	}
	k.line, k.value, k.verdict = columns[0], columns[1], columns[2]
	k.path, _, _ = strings.Cut(k.line, " ")
	return k
}

// described formats a field as in testdata/arguments.txt.
func described(f config.Field) string {
	s := f.Path + " " + f.Type
	if f.Labeled {
		s = f.Path + " labeled " + f.Type
	}
	if f.Repeated {
		s += "*"
	}
	if f.Required {
		s += " required"
	}
	if f.Default != "" {
		s += " = " + f.Default
	}
	return s
}

// blocks returns functions that create the arguments of every native block, by
// name.
func blocks(t *testing.T) map[string]func() any {
	t.Helper()
	made := map[string]func() any{}
	for _, r := range natives.All() {
		if r.Name != "loki.process" { // its own tests check its stages
			made[r.Name] = r.NewArgs
		}
	}
	tel, err := telemetry.New(telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made["logging"] = tel.Definition().NewConfig
	return made
}

// TestArguments compares names, types and defaults with Alloy's.
func TestArguments(t *testing.T) {
	golden := sections(t)
	for name, args := range blocks(t) {
		var want, got []string
		for _, k := range golden[name] {
			if !k.beside {
				want = append(want, k.line)
			}
		}
		for _, f := range config.Describe(args()) {
			got = append(got, described(f))
		}
		sort := cmp.Transformer("sort", sorted)
		if diff := cmp.Diff(want, got, sort); diff != "" {
			t.Errorf("section %s of testdata/arguments.txt is not what the code says; change the one that is wrong (-file +code):\n%s", name, diff)
		}
	}
}

func sorted(in []string) map[string]int {
	m := map[string]int{}
	for _, s := range in {
		m[s]++
	}
	return m
}

// written returns a block with one argument and everything that it requires, and
// the line of the argument, or of its block if that is refused. header is the
// line of its block.
func written(name string, all []known, k known) (text string, line, header int, verdict string) {
	lines := []string{name + " {"}
	if name != "logging" {
		lines[0] = name + ` "x" {`
	}
	add := func(depth int, name, value string) {
		lines = append(lines, strings.Repeat("\t", depth)+name+" = "+value)
	}
	parts := strings.Split(k.path, ".")
	isBlock := strings.Contains(k.line, " block")
	byPath := map[string]known{}
	for _, o := range all {
		byPath[o.path] = o
	}
	verdict, line, header = k.verdict, -1, 1
	depth := 1
	have := func(last string) bool { return !isBlock && parts[len(parts)-1] == last }
	for _, o := range all { // the requirements of the top level
		if o.beside && o.path != k.path {
			add(1, o.path, o.value)
		}
		if strings.HasSuffix(o.line, " required") && !strings.Contains(o.path, ".") && o.path != k.path {
			needs := strings.Split(o.value, "; ")
			if !strings.Contains(o.line, " block") {
				add(1, o.path, needs[0])
			} else if parts[0] != o.path {
				lines = append(lines, "\t"+o.path+labelOf(o)+" {")
				for _, need := range needs {
					n, v, _ := strings.Cut(need, " = ")
					add(2, n, v)
				}
				lines = append(lines, "\t}")
			}
		}
	}
	for i := range parts {
		at := strings.Join(parts[:i+1], ".")
		o := byPath[at]
		if i == len(parts)-1 && !isBlock {
			break
		}
		lines = append(lines, strings.Repeat("\t", depth)+parts[i]+labelOf(o)+" {")
		header = len(lines)
		if o.verdict != "" && line < 0 {
			verdict, line = o.verdict, header
		}
		depth++
		nested := i < len(parts)-2 || i == len(parts)-2 && isBlock
		for _, need := range strings.Split(o.value, "; ") {
			if block, ok := strings.CutSuffix(need, " {}"); ok && !nested { // one of several blocks
				lines = append(lines, block+" {", "}")
			}
			n, v, ok := strings.Cut(need, " = ")
			if !ok || i == len(parts)-2 && (have(n) || strings.Contains(k.value, "; "+n+" = ") || strings.Contains(k.value+";", "; -"+n+";")) {
				continue
			}
			add(depth, n, v)
		}
	}
	if !isBlock {
		values := strings.Split(k.value, "; ")
		add(depth, parts[len(parts)-1], values[0])
		if line < 0 {
			line = len(lines)
		}
		for _, need := range values[1:] {
			if n, v, ok := strings.Cut(need, " = "); ok {
				add(depth, n, v)
			}
		}
	}
	for ; depth > 0; depth-- {
		lines = append(lines, strings.Repeat("\t", depth-1)+"}")
	}
	return strings.Join(lines, "\n") + "\n", line, header, verdict
}

// labelOf returns the label of a block.
func labelOf(o known) string {
	if strings.Contains(o.line, " labeled ") {
		return ` "x"`
	}
	return ""
}

// decode decodes the text of one block.
func decode(text string, args any) config.Diagnostics {
	c, ds := config.Parse(map[string]string{"c.alloy": text})
	if len(ds) > 0 {
		return ds
	}
	s := c.NewScope("v0.0.0")
	recv := flow.NewReceiver("prometheus.echo.x", batch.SignalMetrics, nil, nil)
	s.Set("prometheus.echo.x", config.WithReceiver(echo.Exports{}, recv))
	return c.Blocks[0].Decode(s, args)
}

// TestEveryArgument writes each argument into a config. It is accepted, refused
// at the position of the argument or of its block, or causes a warning, as
// listed. A misspelt name is unknown.
func TestEveryArgument(t *testing.T) {
	golden := sections(t)
	for name, newArgs := range blocks(t) {
		for _, k := range golden[name] {
			if k.beside {
				continue
			}
			text, line, header, verdict := written(name, golden[name], k)
			ds := decode(text, newArgs())
			var want string
			severity := config.Error
			switch {
			case verdict == "no effect":
				want, severity = path.Base(strings.ReplaceAll(k.path, ".", "/"))+" has no effect", config.Warning
			case verdict != "":
				want = strings.TrimPrefix(verdict, "refused: ")
			}
			if want == "" {
				if len(ds) > 0 {
					t.Errorf("%s: %s\n%s", name, ds, text)
				}
			} else if !at(ds, line, severity, want) && !at(ds, header, severity, want) {
				t.Errorf("%s: got %q, want %q in line %d or at its block of\n%s", name, ds, want, line, text)
			}

			if strings.Contains(k.line, " block") || strings.Contains(verdict, "refused") {
				continue
			}
			last := regexp.MustCompile(fmt.Sprintf(`(?m)^(\t{%d}`, 1+strings.Count(k.path, ".")) + path.Base(strings.ReplaceAll(k.path, ".", "/")) + `) =`)
			misspelt := last.ReplaceAllString(text, "${1}z =")
			if ds := decode(misspelt, newArgs()); !at(ds, line, config.Error, "unknown attribute "+k.path+"z") {
				t.Errorf("%s: got %q for\n%s", name, ds, misspelt)
			}
		}
	}
}

func at(ds config.Diagnostics, line int, severity config.Severity, text string) bool {
	for _, d := range ds {
		if d.Line == line && d.Severity == severity && strings.Contains(d.Msg, text) {
			return true
		}
	}
	return false
}

// TestHTTPArgumentsCount: each argument of the HTTP client changes the client, in
// both components that have one.
func TestHTTPArgumentsCount(t *testing.T) {
	golden := sections(t)
	isHTTP := map[string]bool{}
	for _, k := range golden["http"] {
		isHTTP[k.path] = !strings.Contains(k.line, " block")
	}
	clients := func(args any) any {
		var err error
		var c any
		switch a := args.(type) {
		case *scrape.Arguments:
			c, err = a.Client.Config()
		case *remotewrite.Arguments:
			c, err = a.Endpoints[0].Client.Config()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, name := range []string{"prometheus.scrape", "prometheus.remote_write"} {
		n := 0
		for _, k := range golden[name] {
			if !isHTTP[strings.TrimPrefix(k.path, "endpoint.")] {
				continue
			}
			n++
			with, without := blocks(t)[name](), blocks(t)[name]()
			text, line, _, _ := written(name, golden[name], k)
			lines := strings.Split(text, "\n")
			ds := decode(text, with)
			if strings.HasSuffix(k.path, "oauth2.client_id") || strings.HasSuffix(k.path, "oauth2.token_url") {
				lines[line-1] = map[bool]string{true: `client_id = "i"`, false: `token_url = "http://t/"`}[strings.HasSuffix(k.path, "id")]
			} else if strings.Contains(k.path, "cert_") || strings.Contains(k.path, "key_") {
				lines[line-1], lines[line] = "", "" // a pair
			} else {
				lines[line-1] = ""
			}
			if strings.Contains(k.path, "proxy_connect_header") {
				lines[line-1] = "" // keep the URL
			}
			ds = append(ds, decode(strings.Join(lines, "\n"), without)...)
			if len(ds) > 0 {
				t.Errorf("%s: %s\n%s", k.path, ds, strings.Join(lines, "\n"))
				continue
			}
			if reflect.DeepEqual(clients(with), clients(without)) {
				t.Errorf("%s: %s changes nothing", name, k.path)
			}
		}
		if n < 40 {
			t.Errorf("%s: only %d arguments were tried", name, n)
		}
	}
}

// TestRuleArgumentsCount: each argument of a rule changes the rule.
func TestRuleArgumentsCount(t *testing.T) {
	base := func() map[string]string {
		return map[string]string{"action": `"replace"`, "target_label": `"x"`, "source_labels": `["b"]`}
	}
	shown := func(body map[string]string) string {
		text := "prometheus.relabel \"x\" {\nforward_to = []\nrule {\n"
		for n, v := range body {
			text += n + " = " + v + "\n"
		}
		var a relabel.Arguments
		if ds := decode(text+"}\n}\n", &a); len(ds) > 0 {
			t.Fatalf("%s\n%s", ds, text)
		}
		return fmt.Sprintf("%+v", *rule.Configs(a.Rules)[0])
	}
	for _, k := range sections(t)["rule"] {
		body := base()
		before := shown(body)
		body[k.path], _, _ = strings.Cut(k.value, "; ")
		if after := shown(body); after == before {
			t.Errorf("%s changes nothing of %s", k.path, before)
		}
	}
}
