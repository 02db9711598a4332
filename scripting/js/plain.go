package js

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/weir-run/weir/scripting"
)

var _ scripting.Evaluator = (*Language)(nil)

// hookPlain is the hook of errors while a plain file runs.
const hookPlain = "main"

// Plain compiles a plain file. Its arguments are in the global args.
func (l *Language) Plain(f scripting.File, env scripting.Env) (scripting.Plain, error) {
	if strings.HasPrefix(f.Text, "#!") {
		_, rest, _ := strings.Cut(f.Text, "\n")
		f.Text = "\n" + rest
	}
	p, err := read(f, env, nil, "put it into (async () => { … })()")
	if err != nil {
		return nil, err
	}
	p.def = &scripting.Definition{}
	return func(ctx context.Context, o scripting.PlainOptions) error { return p.plain(ctx, o) }, nil
}

// errStopped is the error of a file that was cancelled.
var errStopped = fmt.Errorf("stopped: %w", context.Canceled)

// openArgs creates the global args of a plain file.
func (v *vm) openArgs() {
	if v.prog.args == nil {
		return
	}
	args := make([]any, len(v.prog.args))
	for i, a := range v.prog.args {
		args[i] = v.rt.ToValue(a)
	}
	v.must(v.rt.GlobalObject().Set("args", v.freeze(v.rt.NewArray(args...))))
}

func (p *program) plain(ctx context.Context, o scripting.PlainOptions) error {
	p.args = append([]string{}, o.Args...)
	v := p.newVM(scripting.Host{Log: func(_ slog.Level, _, msg string, _ []any) { o.Print(msg) }})
	v.hook = hookPlain
	v.budget.memory(cmp.Or(o.Memory, scripting.DefaultMemory), ", the limit is --memory")
	v.budget.start(o.Time, 0)
	v.budget.setting = ", the limit is --time"
	defer context.AfterFunc(ctx, func() { v.budget.stopCall(errStopped) })()
	err := v.try(func() error {
		_, err := v.module(p.main)
		return err
	})
	if err == nil {
		err = v.unheard()
	}
	if err == nil {
		return nil
	}
	err = v.scriptError(err)
	if e, ok := errors.AsType[*scripting.Error](err); ok && strings.Contains(e.Error(), "ctx is not defined") {
		e.Hint = "a plain file has no ctx and no grants: no network, files or environment; a component gets them from its block"
	}
	return err
}
