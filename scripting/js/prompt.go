package js

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

var _ scripting.Prompter = (*vm)(nil)

// prompt is what a VM has for statements that a person types. Their variables are in
// the scope that the scripts of a goja runtime share.
type prompt struct {
	names map[string]bool // of the variables
	bind  goja.Callable   // sets batch and ctx
}

// openPrompt declares the variables that exist before the first statement: batch, ctx,
// the modules, and what the component's file exports by name.
func (v *vm) openPrompt() error {
	// The program belongs to all VMs, and statements add files to it.
	p := *v.prog
	p.files, p.shown = maps.Clone(p.files), maps.Clone(p.shown)
	v.prog = &p
	q := &prompt{names: map[string]bool{"batch": true, "ctx": true}}
	values := map[string]goja.Value{}
	if exports, err := v.module(p.main); err == nil && objectOf(exports) != nil {
		for _, name := range objectOf(exports).Keys() {
			values[name] = objectOf(exports).Get(name)
		}
	}
	for name := range p.stdlib {
		values[name] = v.require(p.main, libPrefix+name)
	}
	delete(values, "default")
	var names []string
	var args []goja.Value
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if plainKey.MatchString(name) {
			names, args = append(names, name), append(args, values[name])
			q.names[name] = true
		}
	}
	list := strings.Join(names, ", ")
	made, err := v.rt.RunString("let batch, ctx, " + list + "; [(a) => { [" + list + "] = a }, (b, c) => { batch = b; ctx = c }]")
	if err != nil {
		return err
	}
	set, _ := goja.AssertFunction(made.(*goja.Object).Get("0"))
	q.bind, _ = goja.AssertFunction(made.(*goja.Object).Get("1"))
	items := make([]any, len(args))
	for i, a := range args {
		items[i] = a
	}
	if _, err := set(goja.Undefined(), v.rt.NewArray(items...)); err != nil {
		return err
	}
	v.prompt = q
	return nil
}

// ready opens the prompt of the VM, if it is not open.
func (v *vm) ready() error {
	if v.prompt != nil {
		return nil
	}
	if err := v.try(v.openPrompt); err != nil {
		return v.scriptError(err)
	}
	return nil
}

// Eval evaluates a statement.
func (v *vm) Eval(ctx context.Context, s *scripting.Statement) (shown string, err error) {
	v.hook = ""
	if err := v.ready(); err != nil {
		return "", err
	}
	st, err := v.compileStatement(s.File)
	if err != nil {
		return "", err
	}
	leave := v.bindStatement(s)
	defer leave()
	v.budget.setting = ", the limit is --time"
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		v.budget.stopCall(fmt.Errorf("the statement was stopped: %w", context.Canceled))
		close(stopped)
	})
	shown, err = v.evaluate(s, st)
	if !stop() {
		<-stopped
		if err == nil {
			err = v.scriptError(v.budget.err())
		}
	}
	return shown, err
}

func (v *vm) evaluate(s *scripting.Statement, st *statement) (shown string, err error) {
	var fn goja.Value
	err = v.try(func() error {
		if _, err := v.prompt.bind(goja.Undefined(), v.batchOf(s), v.ctx.metrics); err != nil {
			return err
		}
		fn, err = v.rt.RunProgram(st.chunk.prog)
		return err
	})
	if err != nil {
		return "", v.scriptError(err)
	}
	for _, name := range st.declares {
		v.prompt.names[name] = true
	}
	got, err := v.run(fn)
	if err != nil || !st.expression {
		return "", err
	}
	if err := v.try(func() error { shown = v.showTo(s, got); return nil }); err != nil {
		return "", v.scriptError(err)
	}
	return shown, nil
}

// batchOf returns the object of the batch of a statement, or undefined.
func (v *vm) batchOf(s *scripting.Statement) goja.Value {
	switch {
	case s.Metrics != nil:
		return v.batch
	case s.Logs != nil:
		return v.logBatch
	}
	return goja.Undefined()
}

// bindStatement enters the call of a statement, which leave ends.
func (v *vm) bindStatement(s *scripting.Statement) (leave func()) {
	v.win, v.lines = s.Metrics, s.Logs
	v.out, v.outLogs = v.call.Metrics, v.call.Logs
	sends := v.prog.def.Sends
	if s.Metrics != nil && sends&batch.SignalMetrics != 0 {
		v.out = s.Metrics
	}
	if s.Logs != nil && sends&batch.SignalLogs != 0 {
		v.outLogs = s.Logs
	}
	return func() {
		v.win, v.lines, v.out, v.outLogs = nil, nil, nil, nil
		v.closeData()
	}
}

// showTo returns a value for people.
func (v *vm) showTo(s *scripting.Statement, x goja.Value) string {
	t := &test{v: v}
	text := (&shower{t: t, flat: true, to: s}).value(x)
	if len(text) > maxFlat || strings.Contains(text, "\n") {
		text = (&shower{t: t, to: s}).value(x)
	}
	if len(text) > scripting.MaxShownBytes {
		return strings.ToValidUTF8(text[:scripting.MaxShownBytes], "") + "…"
	}
	return text
}

// hostedText returns the text of a batch with its first records, or of a record or
// another part of a batch.
func (s *shower) hostedText(o *goja.Object) string {
	v := s.t.v
	if o != v.batch && o != v.logBatch {
		return o.String()
	}
	rows, more := s.to.ShownRows(scripting.MaxShownRows)
	text := "batch of 1 record"
	if n := len(rows) + more; n != 1 {
		text = fmt.Sprintf("batch of %d records", n)
	}
	for _, row := range rows {
		text += "\n  " + row
	}
	if more > 0 {
		text += fmt.Sprintf("\n  … and %d more", more)
	}
	return text
}

// Complete returns names and members for the word at the end of a statement.
func (v *vm) Complete(s *scripting.Statement) (out []string) {
	v.hook = ""
	if v.ready() != nil {
		return nil
	}
	path, typed := scripting.WordsAt(s.File.Text, ".")
	leave := v.bindStatement(s)
	defer leave()
	// Under try: reading a member may fail.
	_ = v.try(func() error {
		if _, err := v.prompt.bind(goja.Undefined(), v.batchOf(s), v.ctx.metrics); err != nil {
			return err
		}
		names := v.variables()
		var x goja.Value
		for i, name := range path {
			if !slices.Contains(names, name) {
				return errors.New("there is no such member")
			}
			if i > 0 {
				x = objectOf(x).Get(name)
			} else if got, err := v.rt.RunString(name); err != nil {
				return err
			} else {
				x = got
			}
			names = v.members(x)
		}
		for _, name := range names {
			if strings.HasPrefix(name, typed) && plainKey.MatchString(name) {
				out = append(out, name)
			}
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// variables returns the names of the variables and of the globals.
func (v *vm) variables() []string {
	return slices.AppendSeq(v.rt.GlobalObject().GetOwnPropertyNames(), maps.Keys(v.prompt.names))
}

// members returns the names of the members of a value, in any order.
func (v *vm) members(x goja.Value) (names []string) {
	if x == nil || goja.IsUndefined(x) || goja.IsNull(x) {
		return nil
	}
	t := v.typeOf(x)
	if t != nil {
		for _, name := range api.Members(t) {
			names = append(names, scripting.CamelCase(name))
		}
	}
	o := objectOf(x)
	if o == nil && goja.IsString(x) {
		o = v.rt.GlobalObject().Get("String").(*goja.Object).Get("prototype").(*goja.Object)
	}
	for ; o != nil && o != v.intrinsics.objectProto; o = o.Prototype() {
		names = append(names, o.GetOwnPropertyNames()...)
	}
	return names
}

// typeOf returns the type of a value of weir, or nil.
func (v *vm) typeOf(x goja.Value) *scripting.ObjectType {
	t := api.Get()
	switch {
	case x.SameAs(v.batch):
		return t.Batch
	case x.SameAs(v.logBatch):
		return t.Logs
	}
	switch hostOf(x).(type) {
	case *record:
		return t.Record
	case *line:
		return t.Line
	}
	if o, ok := boxed(x).(*scripting.Object); ok {
		return o.Type
	}
	return nil
}
