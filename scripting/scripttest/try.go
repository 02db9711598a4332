package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/registry"
)

// TrialTime limits the time of a trial.
const TrialTime = 30 * time.Second

// tryNamespace is the namespace of a script that is tried outside of a folder of
// scripts.
const tryNamespace = "try"

// TryOptions are the options of Try.
type TryOptions struct {
	// Options are those of the script: Languages, Modules, Embedded, Dir and Checks.
	Options
	// File is the script.
	File string
	// Args are arguments of the block, such as site=berlin, or blocks in the config
	// language. They replace arguments in the header of the script.
	Args []string
	// Input returns the input of a script that accepts records.
	Input func(accepts batch.Signals) (Input, error)
	// Now is the time at which the clock begins.
	Now time.Time
	// Advance sets the clock forward after the input, so that timers run; 0: not.
	Advance time.Duration
	// LookupEnv returns environment variables if Allow is set.
	LookupEnv func(name string) (value string, ok bool)
	// Allow lets the script reach what it needs outside of weir. Otherwise the
	// requests of a sink are answered with status 200, and all else fails.
	Allow bool
}

// Trial is the result of Try.
type Trial struct {
	Name    string // of the component
	Input   string // the name of the input; "" for a source
	In, Out int    // records
	Kept    int    // records that were sent unchanged
	Changed []Change
	Dropped []string // records in text form
	Added   []string
	Errors  []*scripting.Error
	Printed []string // lines that the script printed or logged
	Outside []string // requests and the like that were not made
	Exports []string // name = value
	// Outcome describes what a sink did with the records; "" for other components.
	Outcome string
	// Sources are the absolute paths of the files that the script depends on. It is
	// set even if Try fails.
	Sources []string
}

// Try runs a script once with input and compares what it sends with the input. The
// clock begins at o.Now and does not advance by itself. The error is why the script did
// not run; errors of its hooks are in the trial, which is never nil.
func Try(ctx context.Context, o TryOptions) (*Trial, error) {
	tr := &Trial{}
	abs, err := filepath.Abs(o.File)
	if err != nil {
		return tr, fmt.Errorf("cannot find the script: %w", err)
	}
	tr.Sources = []string{abs}
	if info, err := files.Stat(abs); err != nil {
		return tr, fmt.Errorf("cannot try the script: %w", err)
	} else if info.IsDir() {
		return tr, fmt.Errorf("cannot try %s: it is a folder; name a script", o.File)
	}
	t, c, err := o.target(abs)
	if err != nil {
		return tr, err
	}
	tr.Name = t.name
	reg, ok := c.Lookup(t.name)
	tr.Sources = slices.Compact(slices.Sorted(slices.Values(append(tr.Sources, reg.Sources...))))
	switch {
	case !ok:
		if _, err := registry.Walk(t.suite.folder.Dir, ""); err != nil {
			return tr, fmt.Errorf("cannot try %s: cannot list the folder that it is in: %w; move the script to a folder scripts/NAMESPACE", o.File, err)
		}
		return tr, fmt.Errorf("cannot try %s: the names of scripts and their folders consist of letters, digits and _; names that begin with _ are ignored", o.File)
	case reg.Err != nil:
		return tr, reg.Err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, TrialTime, fmt.Errorf("the trial took longer than %s", TrialTime))
	defer cancel()
	return tr, tr.run(ctx, o, t, c, reg)
}

// target finds the component of a script. A script that is in no folder called scripts
// is in a namespace of its own.
func (o TryOptions) target(abs string) (t target, c component.Catalog, err error) {
	dir, err := folderOf(o.Dir, abs, false)
	if err != nil {
		return t, nil, err
	}
	s := &suite{langs: o.Languages, modules: o.Modules}
	l, base, test := s.parts(abs)
	switch {
	case l == nil:
		return t, nil, fmt.Errorf("cannot try %s: it is not a script; scripts end in %s", o.File, strings.Join(extensions(o.Languages), ", "))
	case test:
		return t, nil, fmt.Errorf("cannot try %s: it is a test; name its script", o.File)
	}
	ro := registry.Options{Languages: o.Languages, Modules: o.Modules, Embedded: o.Embedded, UserDir: dir, Checks: o.Checks}
	if rel, err := filepath.Rel(dir, base); o.Dir == "" && (filepath.Base(dir) != defaultDir || err == nil && filepath.Base(rel) == rel) {
		ro.UserDir, ro.Namespace, ro.Embedded = filepath.Dir(abs), tryNamespace, nil
	}
	if c, err = registry.NewCatalog(ro); err != nil {
		return t, nil, err
	}
	s.folder, _ = registry.FolderOf(c)
	if !s.isComponent(base) {
		return t, nil, fmt.Errorf("cannot try %s: a file below lib is no component; try a component that requires it", o.File)
	}
	t = target{suite: s, name: s.component(base), lang: l}
	if ro.Namespace != "" {
		t.name = ro.Namespace + "." + t.name
	}
	t.script, err = s.read(abs)
	return t, c, err
}

func (tr *Trial) run(ctx context.Context, o TryOptions, t target, c component.Catalog, reg component.Registration) error {
	body, at, err := o.body(t, reg)
	if err != nil {
		return err
	}
	outside := &closedOutside{sink: reg.Sends == 0 && reg.Accepts != 0, refusal: errSkipped}
	n, err := newNodeAt(ctx, o.Now, outside.catalog(c, o), t.name, body, at)
	defer func() { tr.Outside = outside.taken() }()
	if err != nil {
		if at == noPosition || len(o.Args) > 0 { // the position is not one that a user can look at
			err = unplaced(err)
		}
		if hint := missingArgs(reg, body); hint != "" {
			err = fmt.Errorf("%w\nhint: %s", err, hint)
		}
		return err
	}
	defer n.stop()
	var in input
	var out *output
	if reg.Accepts == 0 {
		if out, err = n.poll(ctx); err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: weir run --try does not start the hook run and sends no requests; 'weir test' can", err)
		}
	} else {
		var given Input
		if given, err = o.Input(reg.Accepts); err != nil {
			return err
		}
		if in, err = n.readInput(given, o.Modules); err != nil {
			return err
		}
		tr.Input, tr.In = given.Name, in.len()
		out, err = n.sendAny(ctx, in)
	}
	if err != nil {
		return err
	}
	sent, errs := out.trialRecords(), out.errors
	if outside.sink {
		tr.Outcome = out.delivery.String()
	}
	if o.Advance > 0 {
		if out, err = n.advance(ctx, o.Advance); err != nil {
			return err
		}
		sent, errs = append(sent, out.trialRecords()...), append(errs, out.errors...)
		if outside.sink {
			tr.Outcome += fmt.Sprintf("; %s later: %s", o.Advance, out.delivery.String())
		}
	}
	tr.Out, tr.Errors = len(sent), errs
	if !outside.sink {
		before := &output{node: n, t: o.Now.UnixMilli(), nanos: o.Now.UnixNano()}
		before.setInput(in)
		tr.compare(before.trialRecords(), sent)
	}
	if comp, ok := n.comp.(*node.Component); ok {
		for _, a := range comp.Definition().Exports {
			v, err := n.exported(a.Name)
			if err != nil {
				return err
			}
			tr.Exports = append(tr.Exports, a.Name+" = "+show(v))
		}
	}
	tr.Printed = n.log.takeOutput().shown()
	return nil
}

// setInput makes the output consist of what went in.
func (o *output) setInput(in input) {
	if in.logs != nil {
		o.logs = []*batch.Logs{in.logs}
	} else if in.metrics != nil {
		o.batches = []*batch.Metrics{in.metrics}
	}
}

// String describes the outcome in a sentence.
func (d delivery) String() string {
	var parts []string
	if d.delivered > 0 {
		parts = append(parts, fmt.Sprintf("%d delivered", d.delivered))
	}
	if d.waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d wait for a retry in %s", d.waiting, d.after))
	}
	for _, reason := range lossReasons {
		if n := d.lost[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d lost (%s)", n, reason))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing was delivered") + strings.TrimSuffix(": "+d.reason, ": ")
}

// body returns the arguments of the block: those of the first example in the header of
// the script, with o.Args in place of the same names.
func (o TryOptions) body(t target, reg component.Registration) (body string, at config.Span, err error) {
	at = noPosition
	if es := scripting.ParseHeader(t.lang.Comment(t.script.Text)).Examples; len(es) > 0 {
		body, at = es[0].Args, config.Span{File: t.script.Name, Line: es[0].ArgsLine}
	}
	fields := config.Describe(reg.NewArgs())
	var added strings.Builder
	for _, arg := range o.Args {
		name, value, ok := strings.Cut(arg, "=")
		if name = strings.TrimSpace(name); !ok || !identifier.MatchString(name) {
			if !parses(arg) {
				return "", at, fmt.Errorf("cannot use --arg %q: write NAME=VALUE, or a block in the config language", arg)
			}
			added.WriteString(arg + "\n")
			continue
		}
		i := slices.IndexFunc(fields, func(f config.Field) bool { return f.Path == name && !f.Block })
		if i < 0 || name == "forward_to" {
			return "", at, fmt.Errorf("cannot use --arg %q: %s has no argument %s%s", arg, t.name, name, argumentNames(fields))
		}
		value = literal(strings.TrimSpace(value), fields[i].Type)
		if !parses(name + " = " + value) {
			return "", at, fmt.Errorf("cannot use --arg %q: the value of %s is a %s, such as %s", arg, name, fields[i].Type, exampleOf(fields[i].Type))
		}
		body = withoutAttribute(body, name)
		fmt.Fprintf(&added, "%s = %s\n", name, value)
	}
	return body + "\n" + added.String(), at, nil
}

// literal returns a value as the config language has it. Texts need no quotes.
func literal(value, typ string) string {
	switch {
	case strings.HasPrefix(value, `"`) && parses("x = "+value):
		return value
	case typ == "number", typ == "bool", strings.HasPrefix(typ, "list"), strings.HasPrefix(typ, "map"), typ == "any" && parses("x = "+value):
		return value
	}
	return strconv.Quote(value)
}

func exampleOf(typ string) string {
	switch {
	case typ == "number":
		return "3"
	case typ == "bool":
		return "true"
	case strings.HasPrefix(typ, "list"):
		return `["a", "b"]`
	case strings.HasPrefix(typ, "map"):
		return `{"a" = "b"}`
	}
	return `"a"`
}

// parses reports whether text is the body of a block.
func parses(text string) bool {
	cfg, ds := config.Parse(map[string]string{"arguments": "a.b \"c\" {\n" + text + "\n}\n"})
	return ds.Err() == nil && len(cfg.Blocks) == 1
}

// withoutAttribute returns the body of a block without an attribute. Other lines keep
// their numbers.
func withoutAttribute(body, name string) string {
	lines := strings.SplitAfter(body, "\n")
	for i, l := range lines {
		first, _, ok := strings.Cut(l, "=")
		if !ok || strings.TrimSpace(first) != name || !parses(strings.Join(lines[:i], "")) {
			continue
		}
		for end := i + 1; end <= len(lines); end++ {
			if parses(strings.Join(lines[i:end], "")) {
				return strings.Join(lines[:i], "") + strings.Repeat("\n", end-i) + strings.Join(lines[end:], "")
			}
		}
	}
	return body
}

// argumentNames names the arguments of a component for a message.
func argumentNames(fields []config.Field) string {
	var names []string
	for _, f := range fields {
		if !f.Block && !strings.Contains(f.Path, ".") && f.Path != "forward_to" {
			names = append(names, f.Path)
		}
	}
	if len(names) == 0 {
		return ": it has none"
	}
	return "; it has " + strings.Join(names, ", ")
}

// missingArgs returns how to give the required arguments that a body does not have.
func missingArgs(reg component.Registration, body string) string {
	var flags []string
	for _, f := range config.Describe(reg.NewArgs()) {
		if f.Required && !f.Block && !strings.Contains(f.Path, ".") && f.Path != "forward_to" && withoutAttribute(body, f.Path) == body {
			flags = append(flags, "--arg "+f.Path+"=…")
		}
	}
	if len(flags) == 0 {
		return ""
	}
	return "give required arguments with " + strings.Join(flags, " ") + `, or under "Example Args:" in the first comment of the script`
}

// Failed reports whether a hook of the script failed.
func (tr *Trial) Failed() bool { return len(tr.Errors) > 0 }

// errSkipped is why something outside of weir was not reached.
var errSkipped = errors.New("weir run --try does not reach anything outside of weir; --allow permits it")
