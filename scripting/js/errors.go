package js

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

const (
	// maxTrace is the maximum number of frames of a stack.
	maxTrace = 20
	// maxMessage is the maximum length of a script's message in a report, in
	// bytes.
	maxMessage = 4 << 10
)

// thrown is a Go error that was thrown as an object.
type thrown struct {
	obj *goja.Object
	err error
}

// panicked is a Go panic in a host function: a bug in weir.
type panicked struct {
	value  any
	stack  []byte
	engine bool // it happened in goja
}

func newPanicked(value any, stack []byte) *panicked {
	// The frame after the runtime's panic frame caused it.
	_, at, _ := bytes.Cut(stack, []byte("\npanic("))
	for line := range bytes.Lines(at) {
		if len(line) == 0 || line[0] == '\t' || bytes.HasPrefix(line, []byte("runtime.")) || bytes.Contains(line, []byte("0x")) && bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		if bytes.HasPrefix(line, []byte("github.com/")) {
			return &panicked{value, stack, bytes.HasPrefix(line, []byte("github.com/dop251/goja"))}
		}
	}
	return &panicked{value: value, stack: stack}
}

func (p *panicked) Error() string {
	if p.engine {
		return fmt.Sprintf("the JavaScript engine failed on what the script does: %v", p.value)
	}
	return fmt.Sprintf("BUG: panic in a host function: %v", p.value)
}

// raise throws a Go error in the script. An error that goja returned is thrown
// unchanged.
func (v *vm) raise(err error) {
	switch e := err.(type) {
	case *goja.Exception, *goja.InterruptedError, *goja.StackOverflowError:
		panic(e)
	}
	if errors.Is(err, view.ErrTooMuch) {
		err = v.budget.stopCall(fmt.Errorf("%w: %w", scripting.ErrLimit, err))
	}
	panic(v.errorObject(err))
}

// must raises err unless it is nil.
func (v *vm) must(err error) {
	if err != nil {
		v.raise(err)
	}
}

// errorObject returns an Error that represents a Go error in the script.
func (v *vm) errorObject(err error) *goja.Object {
	ctor := v.intrinsics.err
	if _, wrong := errors.AsType[*scripting.ArgError](err); wrong {
		ctor = v.intrinsics.typeErr
	}
	obj, newErr := v.rt.New(ctor, v.rt.ToValue(cut(err.Error())))
	if newErr != nil {
		panic(newErr)
	}
	v.thrown[v.threw%len(v.thrown)] = thrown{obj, err}
	v.threw++
	return obj
}

// goError returns the Go error that an Error represents, or nil for an error of
// the script.
func (v *vm) goError(x goja.Value) error {
	obj, ok := x.(*goja.Object)
	if !ok {
		return nil
	}
	for i := range v.thrown {
		if v.thrown[i].obj == obj {
			return v.thrown[i].err
		}
	}
	return nil
}

// passedOn converts an error that a callback threw to a Go error.
func (v *vm) passedOn(err error) error {
	if err := v.budget.err(); err != nil {
		return err
	}
	ex, ok := errors.AsType[*goja.Exception](err)
	if !ok {
		return err
	}
	if e := v.goError(ex.Value()); e != nil {
		return e
	}
	return errors.New(v.message(ex.Value()))
}

// rejection is the reason of a rejected promise.
type rejection struct{ reason goja.Value }

func (*rejection) Error() string { return "rejected" }

// scriptError converts an error from a call into the script to an
// *scripting.Error.
func (v *vm) scriptError(err error) error {
	if e, ok := err.(*scripting.Error); ok {
		return e
	}
	var frames []scripting.Frame
	var cols []int
	var inner error
	limit := func(e *goja.Exception, because error) {
		v.broken = true
		inner = because
		frames, cols = v.frames(e.Stack())
	}
	switch e := err.(type) {
	case *goja.Exception:
		inner = v.reason(e.Value())
		frames, cols = v.stackOf(e.Value())
		if len(frames) == 0 {
			frames, cols = v.frames(e.Stack())
		}
	case *rejection:
		inner = v.reason(e.reason)
		frames, cols = v.stackOf(e.reason)
	case *goja.InterruptedError:
		because, _ := e.Value().(error)
		if because == nil {
			because = fmt.Errorf("%w: %v", scripting.ErrLimit, e.Value())
		}
		limit(&e.Exception, because)
	case *goja.StackOverflowError:
		limit(&e.Exception, fmt.Errorf("%w: the calls nest too deep", scripting.ErrLimit))
	case *panicked:
		v.broken = true
		inner = err
	default:
		inner = err
	}
	if err := v.budget.err(); err != nil {
		v.broken = true
		inner = err
	}
	if e, ok := inner.(*scripting.Error); ok && e.File != "" {
		return e // from a function that a test passed to the host
	}
	out := v.prog.main.file.Error(v.hookLine(), v.hook, inner)
	if len(frames) > 0 {
		out = v.prog.files[frames[0].File].file.Error(frames[0].Line, v.hook, inner)
		out.Col = cols[0]
		out.Trace = frames
	}
	if len(cols) > 0 {
		out.Err = v.prog.named(v.prog.files[out.File], out.Line, out.Col, inner)
	}
	out.Hint = v.hint(fmt.Sprint(inner))
	if out.Hint == "" && v.prog.test == nil && !v.broken {
		out.Hint = v.prog.advice(out.File, out.Line, out.Err)
	}
	return out
}

// reason returns the error for a value that the script threw.
func (v *vm) reason(x goja.Value) error {
	if e := v.goError(x); e != nil {
		return e
	}
	return errors.New(v.message(x))
}

// message returns the message of a thrown value.
func (v *vm) message(x goja.Value) string {
	out := ""
	if err := v.try(func() error { out = messageOf(x); return nil }); err != nil {
		return "the script threw an error whose message cannot be read"
	}
	return cut(out)
}

func messageOf(x goja.Value) string {
	o, ok := x.(*goja.Object)
	switch {
	case !ok && (goja.IsString(x)):
		return x.String()
	case !ok:
		return "the script threw " + fmt.Sprint(x)
	case o.ClassName() != "Error":
		if m := o.Get("message"); m != nil && goja.IsString(m) {
			return m.String()
		}
		return "the script threw " + kindOf(x) + ": throw new Error(…) says more"
	}
	msg := ""
	if m := o.Get("message"); m != nil && !goja.IsUndefined(m) {
		msg = m.String()
	}
	switch name := o.Get("name"); {
	case name == nil || goja.IsUndefined(name) || name.String() == "Error":
	case msg == "":
		return name.String()
	default:
		return name.String() + ": " + msg
	}
	if msg == "" {
		return "the script threw an Error without a message"
	}
	return msg
}

func cut(msg string) string {
	if len(msg) > maxMessage {
		return strings.ToValidUTF8(msg[:maxMessage], "") + "…"
	}
	return msg
}

// frames converts goja's frames to those of the script.
func (v *vm) frames(stack []goja.StackFrame) (out []scripting.Frame, cols []int) {
	for i := range stack {
		f := &stack[i]
		if v.prog.files[f.SrcName()] == nil || len(out) == maxTrace {
			continue
		}
		at := f.Position()
		name := f.FuncName()
		if name == "<anonymous>" || name == "<native>" {
			name = "function"
		}
		out = append(out, scripting.Frame{File: f.SrcName(), Line: at.Line, Func: name})
		cols = append(cols, at.Column)
	}
	return out, cols
}

// stackOf returns the stack of an Error, which goja provides only as text. It
// is the stack where the error was created, not where it was thrown again.
func (v *vm) stackOf(x goja.Value) (out []scripting.Frame, cols []int) {
	o, ok := x.(*goja.Object)
	if !ok || o.ClassName() != "Error" {
		return nil, nil
	}
	text := ""
	if err := v.try(func() error {
		if s := o.Get("stack"); s != nil && goja.IsString(s) {
			text = s.String()
		}
		return nil
	}); err != nil {
		return nil, nil
	}
	_, text, _ = strings.Cut(text, "\n\tat ")
	for line := range strings.SplitSeq(text, "\n\tat ") {
		f, col, ok := v.prog.frame(line)
		if ok && len(out) < maxTrace {
			out, cols = append(out, f), append(cols, col)
		}
	}
	return out, cols
}

// frame parses a line of a stack as goja writes it: f (scripts/x.ts:3:4(12)).
func (p *program) frame(line string) (f scripting.Frame, col int, ok bool) {
	f.Func = "function"
	line = strings.TrimSpace(line)
	if name, rest, ok := strings.Cut(line, " ("); ok && strings.HasSuffix(line, "))") {
		f.Func, line = name, strings.TrimSuffix(rest, ")")
	}
	line, _, _ = cutLast(line, "(")
	line, c, ok1 := cutLast(line, ":")
	name, n, ok2 := cutLast(line, ":")
	if !ok1 || !ok2 {
		return f, 0, false
	}
	c1 := p.shown[name]
	if c1 == nil {
		return f, 0, false
	}
	f.File = c1.file.Name
	f.Line, _ = strconv.Atoi(n)
	col, _ = strconv.Atoi(c)
	return f, col, f.Line > 0
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
