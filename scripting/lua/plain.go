package lua

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

var _ scripting.Evaluator = (*Language)(nil)

// Plain compiles a plain file. Unlike a component it may assign to globals:
// nothing runs after it that they could leak into. The modules it requires are
// those of components, and may not.
func (l *Language) Plain(f scripting.File, env scripting.Env) (scripting.Plain, error) {
	f.Text = shebang(f.Text)
	p, err := read(f, env, plainFile)
	if err != nil {
		return nil, err
	}
	p.def = &scripting.Definition{}
	return func(ctx context.Context, o scripting.PlainOptions) error { return p.plain(ctx, o) }, nil
}

// shebang blanks the line that says who runs the file.
func shebang(text string) string {
	if !strings.HasPrefix(text, "#") {
		return text
	}
	_, rest, _ := strings.Cut(text, "\n")
	return "\n" + rest
}

func (p *program) plain(ctx context.Context, o scripting.PlainOptions) error {
	v := p.newVM(scripting.Host{Log: func(_ slog.Level, _, msg string, _ []any) { o.Print(msg) }})
	defer v.L.Close()
	args := v.openPlain(o.Args)
	v.budget.heap.start(cmp.Or(o.Memory, scripting.DefaultMemory))
	v.budget.heap.setting = ", the limit is --memory"
	v.budget.start(o.Time, 0)
	v.budget.clock.setting = ", the limit is --time"
	defer context.AfterFunc(ctx, func() { v.budget.stop.Store(true) })()
	err := v.runFunction(v.L.NewFunctionFromProto(p.main.proto), 0, args...)
	if e, ok := errors.AsType[*scripting.Error](err); ok {
		e.Hint = cmp.Or(v.ungranted(e), e.Hint) // the linter only says that ctx is nil
	}
	return err
}

// openPlain makes the globals of a plain file and returns its arguments.
func (v *vm) openPlain(args []string) []lua.LValue {
	v.call.enter(inHook, hookPlain)
	v.library.env.RawSetString("_G", v.library.env) // not the read-only one: the file may write
	arg := v.L.CreateTable(0, 4)
	arg.RawSetInt(0, lua.LString(v.prog.main.file.Name))
	out := make([]lua.LValue, len(args))
	for i, a := range args {
		out[i] = lua.LString(a)
		arg.RawSetInt(i+1, out[i])
	}
	v.library.env.RawSetString("arg", arg)
	return out
}

// ungranted is the hint for a plain file that asks for what only a block grants.
func (v *vm) ungranted(e *scripting.Error) string {
	for _, w := range wordRe.FindAllString(e.Source, -1) {
		if w == "ctx" && v.library.env.RawGetString("ctx") == lua.LNil {
			return "a plain file has no ctx and no grants: no network, files or environment; a component gets them from its block"
		}
	}
	return ""
}
