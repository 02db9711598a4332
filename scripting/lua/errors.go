package lua

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// scriptError makes an *scripting.Error of what PCall returned.
func (v *vm) scriptError(err error) error {
	out := &scripting.Error{Hook: v.call.hook, Trace: append([]scripting.Frame(nil), v.trap.stack...)}
	api, ok := errors.AsType[*lua.ApiError](err)
	if !ok {
		out.Err = err
		return out
	}
	msg := ""
	switch obj := api.Object.(type) {
	case *lua.LUserData:
		if he, ok := obj.Value.(*hostError); ok {
			if inner, ok := he.err.(*scripting.Error); ok && v.test != nil {
				return inner // of a function that a test gave to the host
			}
			c, line, _ := v.prog.position(he.where)
			v.setPlace(out, c, line)
			out.Err = he.err
		} else {
			out.Err = errors.New("error object of type userdata")
		}
	case lua.LString:
		msg = string(obj)
	case *lua.LTable:
		msg = tableMessage(obj)
	case lua.LNumber:
		msg = formatNumber(float64(obj))
	case nil:
		msg = "unknown error"
	default:
		msg = "error object of type " + obj.Type().String()
	}
	if v.budget.tripped != nil {
		v.broken = true
		out.Err = v.budget.tripped
	} else if api.Type == lua.ApiErrorPanic || goPanic(msg) {
		// A Go panic in a host function, or gopher-lua's own: our bug. With a
		// handler PCall does not tell them apart, but for their text.
		v.broken = true
		out.Err = errors.New("BUG: " + strings.TrimPrefix(msg, "BUG: "))
	}
	raw := out.Err == nil // of Lua itself, or error
	if raw {
		c, line, rest := v.prog.position(msg)
		v.setPlace(out, c, line)
		out.Err = errors.New(readable(rest))
		out.Hint = v.findHint(rest, out.Source)
	}
	if out.Line == 0 && len(out.Trace) > 0 {
		v.setPlace(out, v.prog.files[out.Trace[0].File], out.Trace[0].Line)
		if out.Hint == "" {
			out.Hint = v.findHint(out.Err.Error(), out.Source)
		}
	}
	if out.File == "" {
		out.File = v.prog.main.file.Name
	}
	if out.Hint == "" && v.test == nil && !v.broken {
		out.Hint = v.prog.advice(out.File, out.Line, out.Err, raw && ofLua.MatchString(out.Err.Error()))
	}
	return out
}

func goPanic(msg string) bool {
	return strings.HasPrefix(msg, "runtime error: ") || strings.HasPrefix(msg, "interface conversion: ") || strings.HasPrefix(msg, "BUG: ")
}

func (v *vm) setPlace(e *scripting.Error, c *chunk, line int) {
	if c == nil {
		return
	}
	e.File, e.Line, e.Source = c.file.Name, line, scripting.SourceLine(c.file.Text, line)
}

// tableMessage is what an error table says of itself.
func tableMessage(t *lua.LTable) string {
	for _, k := range []string{"message", "msg", "err", "error"} {
		if s, ok := t.RawGetString(k).(lua.LString); ok {
			return string(s)
		}
	}
	return "error object of type table"
}

var rewrites = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`^attempt to index a non-table object\((\w+)\) with key '(.*)'$`), "attempt to index a $1 value with key '$2'"},
	{regexp.MustCompile(`^attempt to call a non-function object$`), "attempt to call a value that is no function"},
	{regexp.MustCompile(`^cannot perform concat operation between (?:string|number) and (\w+)$`), "attempt to concatenate a $1 value"},
	{regexp.MustCompile(`^cannot perform concat operation between (\w+) and \w+$`), "attempt to concatenate a $1 value"},
	{regexp.MustCompile(`^cannot perform (\w+) operation between (\w+) and (\w+)$`), "attempt to $1 $2 and $3"},
	{regexp.MustCompile(`^__len undefined$`), "attempt to get the length of a value that has none, such as nil"},
	{regexp.MustCompile(`^__unm undefined$`), "attempt to negate a value that is no number, such as nil"},
	{regexp.MustCompile(`^registry overflow$`), "stack overflow: too many values"},
}

// maxMessage is how long a script's message may be where it is reported, in bytes.
const maxMessage = 4 << 10

// readable words gopher-lua's messages as Lua does.
func readable(msg string) string {
	if len(msg) > maxMessage {
		msg = strings.ToValidUTF8(msg[:maxMessage], "") + "…"
	}
	msg = strings.TrimSpace(msg)
	for _, r := range rewrites {
		if r.re.MatchString(msg) {
			return r.re.ReplaceAllString(msg, r.to)
		}
	}
	return msg
}

// findHint returns a hint for a line that uses a part of Lua that scripts do not
// have, or a module that was not required. For other lines it is the last error of
// a library function, which may have left a nil behind.
func (v *vm) findHint(msg, source string) string {
	if !strings.Contains(msg, "nil") && !strings.Contains(msg, "non-function") && !strings.Contains(msg, "no function") {
		return ""
	}
	for _, w := range wordRe.FindAllString(source, -1) {
		for _, name := range []string{w, "math." + w} {
			if h, ok := removed[name]; ok {
				return h
			}
		}
	}
	if key := keyRe.FindStringSubmatch(msg); key != nil {
		for _, use := range useRe.FindAllStringSubmatch(source, -1) {
			if _, lib := v.prog.stdlib[use[1]]; use[2] == key[1] && (lib || use[1] == "weir") {
				return fmt.Sprintf("write local %s = require %q above", use[1], use[1])
			}
		}
	}
	return v.call.failure.text
}

var (
	keyRe = regexp.MustCompile(`nil\)? (?:value )?with key '(\w+)'`)
	useRe = regexp.MustCompile(`\b([A-Za-z_]\w*)\s*[.:]\s*([A-Za-z_]\w*)`)
)

// ofLua are messages of Lua's own.
var ofLua = regexp.MustCompile(`^(attempt to|bad argument) `)

var wordRe = regexp.MustCompile(`\b[A-Za-z_]\w*\b`)
