package scripttest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/registry"
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
	// State is ctx.state when the recording began, by name, as JSON has it, and Answers
	// are those of external systems. Secrets are masked.
	State   map[string]any
	Answers []component.Answer
	// Mask are labels whose values are replaced by NAME-1, NAME-2 and so on.
	Mask []string
}

// RecordedCall is one call of a node.
type RecordedCall struct {
	Began   time.Time
	Ended   time.Time
	In, Out string // in the text form of batches
	Partial bool   // the call had more input; Out is not known
	Outside int    // records that were sent outside of calls since the previous call
	// Given means that the node did not make the call: somebody wrote its input, and there
	// is no output.
	Given bool
}

// ErrNoScript is the error for a component that is not in the folder of scripts.
var ErrNoScript = errors.New("there is no such script")

// Recorded is a test that Record has written.
type Recorded struct {
	Text string
	// Name is a name for the file of the test in the folder of the script.
	Name string
	// Differ are the numbers of the calls, which begin at 1, whose recorded output is not
	// the one that the test expects. It may be empty.
	Differ []int
}

// Record returns a test that sends the recorded input to the component and expects the
// output that the script has for it. path is the file of the test, or "": then the test
// is in the language of the script. Comments in the test name the calls whose recorded
// output is not the one that it expects. The test has passed.
func Record(ctx context.Context, o Options, path string, r Recording) (rec Recorded, err error) {
	w, err := newRecordWriter(o, path, r)
	if err != nil {
		return rec, err
	}
	if err := w.replay(ctx, r); err != nil {
		return rec, fmt.Errorf("cannot write a test of %s: %w", r.Node, err)
	}
	text := w.file(r)
	if len(text) > scripting.MaxFileSize {
		return rec, fmt.Errorf("cannot write a test of %s: it would have %d KiB, and the limit is %d KiB; record fewer calls, or select fewer records with an expression",
			r.Node, (len(text)+1023)>>10, scripting.MaxFileSize>>10)
	}
	t := target{suite: w.s, name: r.Component, testLang: w.lang, test: scripting.File{Name: display(w.path), Path: w.path, Text: text}}
	f, _ := w.s.testFile(ctx, t)
	if f.Problem == nil {
		for _, one := range f.Tests {
			f.Problem = cmp.Or(f.Problem, one.Problem)
		}
	}
	if f.Problem != nil {
		return rec, fmt.Errorf("cannot write a test of %s: its output differs from run to run: %s\n%s", r.Node, f.Problem.Msg, f.Problem.Diff)
	}
	name := r.Component[strings.LastIndexByte(r.Component, '.')+1:]
	return Recorded{Text: text, Name: name + "_recorded" + testSuffix(filepath.Ext(w.path)), Differ: w.differ}, nil
}

// CheckRecording returns why Record cannot write a test, as far as this is known without
// calls.
func CheckRecording(o Options, path string, r Recording) error {
	_, err := newRecordWriter(o, path, r)
	return err
}

// recordWriter writes a recorded test.
type recordWriter struct {
	s       *suite
	path    string // of the test
	lang    scripting.Tester
	args    scripting.Value
	opening map[string]*scripting.Map    // mocks that the component is opened with
	state   []string                     // lines that set ctx.state
	mocked  map[string]string            // the mocks that hold, by kind, as code
	masked  map[string]map[string]string // pseudonyms by label and value
	parts   *strings.Replacer            // of masked inside texts; nil: none

	calls   []string // as code
	differ  []int    // numbers of calls with another output than the recorded one
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
	w := &recordWriter{masked: map[string]map[string]string{}, mocked: map[string]string{}}
	for _, label := range r.Mask {
		w.masked[label] = map[string]string{}
	}
	if w.s, err = newSuite(o, dir, &scripting.Probe{}); err != nil {
		return nil, err
	}
	if path == "" {
		path = filepath.Join(dir, "recorded"+w.suffixFor(r.Component)) // which is not written
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
		return nil, fmt.Errorf("cannot record %s: %w: %s is not in %s", r.Node, ErrNoScript, r.Component, display(dir))
	case reg.Err != nil:
		return nil, reg.Err
	case reg.Accepts == 0:
		return nil, unrecordable(r, "it is a source, whose output does not follow from records that it receives", "mocks for what it reads")
	case reg.Sends == 0:
		return nil, unrecordable(r, "it is a sink, which sends no records to other nodes", "mocks for its requests, with input from 'weir tap "+r.Node+":in --format=exposition'")
	case len((&testNode{}).outputSinks(reg)) > 0:
		return nil, unrecordable(r, "its script has several outputs", "input from 'weir tap "+r.Node+":in --format=exposition', and compare :routed(NAME) for each output")
	}
	given := maps.Clone(r.Args)
	delete(given, "forward_to")
	w.args = valueOf(withoutDefaults(given, defaultsOf(reg)))
	return w, nil
}

// unrecordable returns the error for a script that cannot be recorded, with what to write
// instead of a recording.
func unrecordable(r Recording, reason, instead string) error {
	return fmt.Errorf("cannot record %s: %s; write a test by hand with %s ('weir help testing-scripts')", r.Node, reason, instead)
}

// suffixFor is the end of the name of a test in the language of a component, or in Lua.
func (w *recordWriter) suffixFor(component string) string {
	base := filepath.Join(w.s.folder.Dir, filepath.FromSlash(strings.ReplaceAll(component, ".", "/")))
	for _, ext := range extensions(w.s.langs) {
		if _, err := files.Stat(base + ext); err == nil && ext != ".lua" {
			return testSuffix(ext)
		}
	}
	return testSuffix(".lua")
}

// defaultsOf returns the default arguments of a component.
func defaultsOf(reg component.Registration) any {
	if reg.NewArgs == nil {
		return nil
	}
	args := reg.NewArgs()
	if d, ok := args.(interface{ SetToDefault() }); ok {
		d.SetToDefault()
	}
	return config.Redact(args)
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
		if n, ok := v.(json.Number); ok {
			return numberOf(n)
		}
		return of.String()
	case reflect.Bool:
		return of.Bool()
	}
	return nil
}

func numberOf(n json.Number) scripting.Value {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64() // the decoder has checked it
	return f
}

// replay sends the recorded input to the component and writes the calls.
func (w *recordWriter) replay(ctx context.Context, r Recording) error {
	reg, _ := w.s.folder.Catalog.Lookup(r.Component)
	body, err := attributes(w.args, config.Describe(reg.NewArgs()))
	if err != nil {
		return err
	}
	if err := w.pseudonyms(r, reg); err != nil {
		return err
	}
	outside := newRecordedOutside(r.Answers, w.maskText)
	catalog := registry.WithOutside(w.s.folder.Catalog, outside.outside(!has(w.args, "script", "allow")))
	n, err := newNodeAt(ctx, clockOf(r.Calls[0].Began), catalog, r.Component, body, noPosition)
	if err == nil {
		defer n.stop()
	}
	given, failure := outside.take()
	if err := cmp.Or(failure, err); err != nil {
		return unplaced(err)
	}
	w.opening = given
	if err := w.setState(n, r.State); err != nil {
		return err
	}
	for i, c := range r.Calls {
		outside.begin(latest(c.Began, c.Ended))
		text, err := w.call(ctx, n, c)
		given, failure := outside.take()
		if err := cmp.Or(failure, err); err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
		w.calls = append(w.calls, w.comment("    ", fmt.Sprintf("Call %d", i+1))+w.mocks(given)+text)
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// setState fills ctx.state of the component.
func (w *recordWriter) setState(n *testNode, all map[string]any) error {
	c, ok := n.comp.(*node.Component)
	if !ok {
		return nil
	}
	code := code{w.lang.Words()}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := w.maskValue(valueOf(all[name]))
		if v == nil {
			continue
		}
		if err := c.SetStateOf(name, v); err != nil {
			return err
		}
		call := "t:set_state(" + code.text(name) + ", " + code.fit(v, "\n    ") + ")"
		if code.words == scripting.Vitest {
			call = "t.setState" + strings.TrimPrefix(call, "t:set_state") + ";"
		}
		w.state = append(w.state, "    "+call+"\n")
	}
	return nil
}

// mocks writes mocks, by kind, unless they hold already.
func (w *recordWriter) mocks(given map[string]*scripting.Map) string {
	code := code{w.lang.Words()}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(given)) {
		replies, ordered := scripting.NewMap(), false
		for _, key := range given[kind].Keys() {
			v, _ := given[kind].Get(key)
			if list := v.(*scripting.List); kind == component.AnswerEnv || allSame(list) {
				v = list.Items[0]
			} else {
				ordered = true
			}
			replies.Set(key, v)
		}
		text := code.fit(replies, "\n    ")
		if w.mocked[kind] == text && !ordered {
			continue
		}
		w.mocked[kind] = text
		if code.words == scripting.Vitest {
			b.WriteString("    " + kind + "(" + text + ");\n")
			continue
		}
		b.WriteString("    weir.test." + kind + " " + text + "\n")
	}
	return b.String()
}

func allSame(l *scripting.List) bool {
	return !slices.ContainsFunc(l.Items, func(v scripting.Value) bool { return !same(v, l.Items[0]) })
}

// clockOf returns a time of the clock of a test, which has whole milliseconds.
func clockOf(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// call sends the input of one call and returns the code that does it.
func (w *recordWriter) call(ctx context.Context, n *testNode, c RecordedCall) (string, error) {
	code := code{w.lang.Words()}
	lua := code.words == scripting.Busted
	var b strings.Builder
	if wait := clockOf(c.Began).Sub(n.clock.Now()); wait >= time.Millisecond {
		by := fmt.Sprintf("%dms", wait.Milliseconds())
		out, err := n.advance(ctx, wait.Truncate(time.Millisecond))
		if err != nil {
			return "", err
		}
		if len(out.errors) > 0 {
			return "", fmt.Errorf("a timer of the script failed: %w", out.errors[0])
		}
		b.WriteString("    " + map[bool]string{true: "t:advance(" + code.text(by) + ")", false: "t.advance(" + code.text(by) + ");"}[lua] + "\n")
	}
	sent, err := w.mask(c.In, n.accepts)
	if err != nil {
		return "", err
	}
	in, err := n.read(sent)
	if err != nil {
		return "", err
	}
	out, err := n.sendAny(ctx, in)
	if err != nil {
		return "", err
	}
	switch {
	case c.Given:
	case c.Partial:
		w.partial++
	default:
		recorded, err := w.mask(c.Out, n.sends)
		if err != nil {
			return "", err
		}
		want, err := n.want(recorded)
		if err != nil {
			return "", err
		}
		if out.difference(want, false) != "" {
			w.differ = append(w.differ, len(w.calls)+1)
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
	return b.String() + open + "      " + code.declare("input", sent) + "      " + code.declare("want", out.text()) + "      " + check + "\n" + closing, nil
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
		"The component begins with the state in ctx.state that the node had. Variables of the",
		"script and random numbers are not recorded. The expected outputs are those of the",
		"script in this test.",
	}
	if r.Calls[0].Given {
		lines = []string{"Written in the playground of " + r.Node + "; the expected output is that of the script there."}
	}
	if len(w.differ) > 0 {
		lines = append(lines, "The running node sent a different output in these calls: "+strings.Trim(strings.ReplaceAll(fmt.Sprint(w.differ), " ", ", "), "[]")+".",
			"Reasons are variables of the script, random numbers, calls that were not recorded,",
			"the time that passes during a call, masked values, or another version of the script.")
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
	opening := w.mocks(w.opening)
	begin := strings.Join(w.state, "")
	body := "\n" + strings.Join(w.calls, "\n")
	if w.lang.Words() == scripting.Vitest {
		names := []string{"component", "describe", "expect", "test"}
		names = slices.Sorted(slices.Values(append(names, slices.Collect(maps.Keys(w.mocked))...)))
		return head + "import { " + strings.Join(names, ", ") + " } from \"weir/test\";\n\ndescribe(" + code.text(r.Component) + ", () => {\n  test(" + name +
			", () => {\n" + opening + "    const t = " + open + ";\n" + begin + body + "  });\n});\n"
	}
	return head + "local weir = require \"weir\"\n\ndescribe(" + code.text(r.Component) + ", function()\n  it(" + name +
		", function()\n" + opening + "    local t = weir.test." + open + "\n" + begin + body + "  end)\nend)\n"
}
