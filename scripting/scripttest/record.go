package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
)

// Recording is what Record writes a test from.
type Recording struct {
	// Node is the name of the recorded node, and Component that of its component.
	Node, Component string
	// Args are the arguments of the node as JSON has them: strings, numbers, bools,
	// lists and maps. Secrets are masked.
	Args map[string]any
	// Where is the expression that selected the records, or "".
	Where string
	// Calls are at least one call of the node, in order.
	Calls []RecordedCall
	// Mask are labels whose values are replaced by NAME-1, NAME-2 and so on.
	Mask []string
}

// RecordedCall is one call of a node.
type RecordedCall struct {
	Began   time.Time
	In, Out string // in the text form of batches
	Partial bool   // the call had more input; Out is not known
	Outside int    // records that were sent outside of calls since the previous call
}

// Record returns a test that sends the recorded input to the component and expects the
// output that the script has for it. path is the file of the test, or "": then the test
// is in the language of the script. Comments in the test name the calls whose recorded
// output is not the one that it expects. The test has passed.
func Record(ctx context.Context, o Options, path string, r Recording) (string, error) {
	w, err := newRecordWriter(o, path, r)
	if err != nil {
		return "", err
	}
	if err := w.replay(ctx, r); err != nil {
		return "", fmt.Errorf("cannot write a test of %s: %w", r.Node, err)
	}
	text := w.file(r)
	t := target{suite: w.s, name: r.Component, testLang: w.lang, test: scripting.File{Name: display(w.path), Path: w.path, Text: text}}
	f, _ := w.s.testFile(ctx, t)
	if f.Problem == nil {
		for _, one := range f.Tests {
			f.Problem = cmp.Or(f.Problem, one.Problem)
		}
	}
	if f.Problem != nil {
		return "", fmt.Errorf("cannot write a test of %s: its output differs from run to run: %s\n%s", r.Node, f.Problem.Msg, f.Problem.Diff)
	}
	return text, nil
}

// CheckRecording returns why Record cannot write a test, as far as this is known without
// calls.
func CheckRecording(o Options, path string, r Recording) error {
	_, err := newRecordWriter(o, path, r)
	return err
}

// recordWriter writes a recorded test.
type recordWriter struct {
	s      *suite
	path   string // of the test
	lang   scripting.Tester
	args   scripting.Value
	masked map[string]map[string]string // pseudonyms by label and value

	calls   []string // as code
	differ  []string // numbers of calls with another output than the recorded one
	partial int
	outside int
}

func newRecordWriter(o Options, path string, r Recording) (*recordWriter, error) {
	dir, err := filepath.Abs(cmp.Or(o.Dir, defaultDir))
	if err == nil && path != "" {
		dir, err = folderOf(o.Dir, path, false)
	}
	if err != nil {
		return nil, err
	}
	w := &recordWriter{masked: map[string]map[string]string{}}
	for _, label := range r.Mask {
		w.masked[label] = map[string]string{}
	}
	if w.s, err = newSuite(o, dir, &scripting.Probe{}); err != nil {
		return nil, err
	}
	if path == "" {
		path = filepath.Join(dir, "recorded"+w.testSuffix(r.Component)) // which is not written
	}
	if w.path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	l, _, test := w.s.parts(w.path)
	w.lang, _ = l.(scripting.Tester)
	if !test || w.lang == nil {
		return nil, fmt.Errorf("cannot write a test to %s: the name of a test ends in _test.lua, .test.js or .test.ts", path)
	}
	reg, ok := w.s.folder.Catalog.Lookup(r.Component)
	switch {
	case !ok:
		return nil, fmt.Errorf("cannot record %s: there is no script %s in %s; name the folder of scripts with --scripts", r.Node, r.Component, display(dir))
	case reg.Err != nil:
		return nil, reg.Err
	case reg.Accepts == 0 || reg.Sends == 0:
		return nil, fmt.Errorf("cannot record %s: only scripts that receive records and send them to other nodes can be recorded", r.Node)
	case len((&testNode{}).outputSinks(reg)) > 0:
		return nil, fmt.Errorf("cannot record %s: its script has several outputs", r.Node)
	}
	var defaults any
	if reg.NewArgs != nil {
		args := reg.NewArgs()
		if d, ok := args.(interface{ SetToDefault() }); ok {
			d.SetToDefault()
		}
		defaults = config.Redact(args)
	}
	given := maps.Clone(r.Args)
	delete(given, "forward_to")
	w.args = valueOf(withoutDefaults(given, defaults))
	return w, nil
}

// testSuffix is the end of the name of a test in the language of a component, or in Lua.
func (w *recordWriter) testSuffix(component string) string {
	base := filepath.Join(w.s.folder.Dir, filepath.FromSlash(strings.ReplaceAll(component, ".", "/")))
	for _, ext := range extensions(w.s.langs) {
		if _, err := files.Stat(base + ext); err == nil && ext != ".lua" {
			return ".test" + ext
		}
	}
	return "_test.lua"
}

// withoutDefaults returns the arguments that differ from the defaults.
func withoutDefaults(args map[string]any, defaults any) map[string]any {
	known, _ := defaults.(map[string]any)
	out := map[string]any{}
	for k, v := range args {
		if inner, ok := v.(map[string]any); ok {
			if inner = withoutDefaults(inner, known[k]); len(inner) > 0 {
				out[k] = inner
			}
			continue
		}
		if v != nil && !reflect.DeepEqual(valueOf(v), valueOf(known[k])) {
			out[k] = v
		}
	}
	return out
}

// valueOf converts what JSON or config.Redact has to a value of scripts. Empty lists and
// maps become nil.
func valueOf(v any) scripting.Value {
	of := reflect.ValueOf(v)
	switch of.Kind() {
	case reflect.Map:
		m := scripting.NewMap()
		for _, k := range slices.SortedFunc(slices.Values(of.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if e := valueOf(of.MapIndex(k).Interface()); e != nil {
				m.Set(k.String(), e)
			}
		}
		if m.Len() == 0 {
			return nil
		}
		return m
	case reflect.Slice:
		if of.Len() == 0 {
			return nil
		}
		l := &scripting.List{}
		for i := range of.Len() {
			l.Items = append(l.Items, valueOf(of.Index(i).Interface()))
		}
		return l
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return of.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int64(of.Uint())
	case reflect.Float32, reflect.Float64:
		if f := of.Float(); f != float64(int64(f)) {
			return f
		}
		return int64(of.Float())
	case reflect.String:
		return of.String()
	case reflect.Bool:
		return of.Bool()
	}
	return nil
}

// replay sends the recorded input to the component and writes the calls.
func (w *recordWriter) replay(ctx context.Context, r Recording) error {
	reg, _ := w.s.folder.Catalog.Lookup(r.Component)
	body, err := attributes(w.args, config.Describe(reg.NewArgs()))
	if err != nil {
		return err
	}
	m := &mocks{words: w.lang.Words(), encode: encoder(w.s.modules)}
	granted := !has(w.args, "script", "allow")
	n, err := newNodeAt(ctx, clockOf(r.Calls[0].Began), m.catalog(w.s.folder.Catalog, granted), r.Component, body, noPosition)
	if err == nil {
		defer n.stop()
	}
	for i, c := range r.Calls {
		if err = cmp.Or(outsideError(m.takeDenied()), err); err != nil {
			return unplaced(err)
		}
		if err = w.call(ctx, n, i+1, c); err != nil {
			err = fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	return cmp.Or(outsideError(m.takeDenied()), err)
}

// clockOf returns a time of the clock of a test, which has whole milliseconds.
func clockOf(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// outsideError explains why a script that needs something outside of weir is refused.
func outsideError(denied error) error {
	if denied == nil {
		return nil
	}
	return errors.New("the script makes requests, reads files or environment variables, or runs commands, which are not recorded")
}

// call sends the input of one call.
func (w *recordWriter) call(ctx context.Context, n *testNode, number int, c RecordedCall) error {
	code := code{w.lang.Words()}
	lua := code.words == scripting.Busted
	var b strings.Builder
	b.WriteString(w.comment("    ", fmt.Sprintf("Call %d", number)))
	if wait := clockOf(c.Began).Sub(n.clock.Now()); wait >= time.Millisecond {
		by := fmt.Sprintf("%dms", wait.Milliseconds())
		out, err := n.advance(ctx, wait.Truncate(time.Millisecond))
		if err != nil {
			return err
		}
		if len(out.errors) > 0 {
			return fmt.Errorf("a timer of the script failed: %w", out.errors[0])
		}
		b.WriteString("    " + map[bool]string{true: "t:advance(" + code.text(by) + ")", false: "t.advance(" + code.text(by) + ");"}[lua] + "\n")
	}
	sent, err := w.mask(c.In, n.accepts)
	if err != nil {
		return err
	}
	in, err := n.read(sent)
	if err != nil {
		return err
	}
	out, err := n.sendAny(ctx, in)
	if err != nil {
		return err
	}
	if c.Partial {
		w.partial++
	} else {
		recorded, err := w.mask(c.Out, n.sends)
		if err != nil {
			return err
		}
		want, err := n.want(recorded)
		if err != nil {
			return err
		}
		if out.difference(want, false) != "" {
			w.differ = append(w.differ, fmt.Sprint(number))
		}
	}
	w.outside += c.Outside
	method := "metrics"
	switch {
	case len(out.errors) > 0:
		method = "failing"
	case in.logs != nil:
		method = "logs"
	}
	open, closing, check := "    do\n", "    end\n", "assert.same(want, t:"+method+"(input))"
	if !lua {
		open, closing, check = "    {\n", "    }\n", "expect(t."+method+"(input)).toEqual(want);"
	}
	b.WriteString(open + "      " + code.declare("input", sent) + "      " + code.declare("want", out.text()) + "      " + check + "\n" + closing)
	w.calls = append(w.calls, b.String())
	return nil
}

// comment returns lines of a comment.
func (w *recordWriter) comment(indent string, lines ...string) string {
	mark := "-- "
	if w.lang.Words() == scripting.Vitest {
		mark = "// "
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(indent+mark+strings.ReplaceAll(l, "\n", " "), " ") + "\n")
	}
	return b.String()
}

// file returns the test.
func (w *recordWriter) file(r Recording) string {
	lines := []string{
		"Recorded from " + r.Node + " of a running weir.",
		"",
		"The component begins without state and random numbers are not recorded. The expected",
		"outputs are those of the script in this test.",
	}
	if len(w.differ) > 0 {
		lines = append(lines, "The running node sent a different output in these calls: "+strings.Join(w.differ, ", ")+".",
			"Reasons are state from before the recording, random numbers, the time that passes",
			"during a call, masked values, or a different version of the script.")
	}
	if r.Where != "" {
		lines = append(lines, "Only records that match this expression were recorded: "+r.Where)
	}
	if w.partial > 0 {
		lines = append(lines, fmt.Sprintf("The input of %d calls is a part of the original one, so their outputs were not", w.partial), "compared with those of the running node.")
	}
	if w.outside > 0 {
		lines = append(lines, fmt.Sprintf("The node also sent %d records outside of calls, such as in timers. They are not checked.", w.outside))
	}
	code := code{w.lang.Words()}
	at := clockOf(r.Calls[0].Began).Format("2006-01-02T15:04:05.000Z")
	args := w.args
	if args == nil {
		args = scripting.NewMap()
	}
	open := "component(" + code.text(r.Component) + ", " + code.fit(args, "\n    ") + ", " + code.text(at) + ")"
	head := w.comment("", lines...)
	name := code.text("handles recorded calls")
	body := strings.Join(w.calls, "\n")
	if w.lang.Words() == scripting.Vitest {
		return head + "import { component, describe, expect, test } from \"weir/test\";\n\ndescribe(" + code.text(r.Component) + ", () => {\n  test(" + name +
			", () => {\n    const t = " + open + ";\n\n" + body + "  });\n});\n"
	}
	return head + "local weir = require \"weir\"\n\ndescribe(" + code.text(r.Component) + ", function()\n  it(" + name +
		", function()\n    local t = weir.test." + open + "\n\n" + body + "  end)\nend)\n"
}

// mask replaces the values of masked labels in the text form of batches.
func (w *recordWriter) mask(text string, signals batch.Signals) (string, error) {
	if len(w.masked) == 0 {
		return text, nil
	}
	samples, logs := sorted(text, signals)
	o := batch.TextOptions{Series: func(sorted []batch.Label, meta *batch.Metadata) *batch.Series {
		s := batch.NewSeries(w.labels(sorted))
		s.SetMeta(meta)
		return s
	}}
	m, err := batch.ParseText(samples, o)
	if err != nil {
		return "", err
	}
	l, err := batch.ParseLogsText(logs, o)
	if err != nil {
		return "", err
	}
	for i, e := range m.Exemplars {
		m.Exemplars[i].Labels = w.labels(e.Labels)
	}
	for i, meta := range l.Meta {
		l.Meta[i] = w.labels(meta)
	}
	return string(batch.AppendLogsText(batch.AppendText(nil, m), l)), nil
}

// labels returns labels with masked values. The same value has the same pseudonym.
func (w *recordWriter) labels(ls []batch.Label) []batch.Label {
	out := slices.Clone(ls)
	for i, l := range out {
		known, ok := w.masked[l.Name]
		if !ok {
			continue
		}
		if known[l.Value] == "" {
			known[l.Value] = fmt.Sprintf("%s-%d", l.Name, len(known)+1)
		}
		out[i].Value = known[l.Value]
	}
	return out
}
