package lua

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The string library is our own: gopher-lua's makes strings of any size in one
// instruction, and its patterns can hang (pattern.go).

func (v *vm) stringLib() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte": v.strByte, "char": v.strChar, "find": v.strFind, "format": v.strFormat,
		"gmatch": v.strGmatch, "gsub": v.strGsub, "len": v.strLen, "lower": v.strMap(strings.ToLower),
		"match": v.strMatch, "rep": v.strRep, "reverse": v.strMap(reverse), "sub": v.strSub,
		"upper": v.strMap(strings.ToUpper), "dump": strDump,
	}
}

// strDump exists for its error: code cannot be loaded at run time.
func strDump(L *lua.LState) int {
	L.RaiseError("GopherLua does not support the string.dump")
	return 0
}

// must raises err as a script error at the caller's line.
func (v *vm) must(L *lua.LState, err error) {
	if err != nil {
		v.raise(L, err)
	}
}

// pushString pushes a string that was made here and charges for it.
func (v *vm) pushString(L *lua.LState, s string) {
	v.must(L, v.budget.chargeString(int64(len(s))))
	L.Push(lua.LString(s))
}

// span turns Lua's i and j into a half-open range of s.
func span(n, i, j int) (int, int) {
	if i < 0 {
		i = max(n+i+1, 1)
	} else if i == 0 {
		i = 1
	}
	if j < 0 {
		j = n + j + 1
	}
	j = min(j, n)
	if i > j {
		return 0, 0
	}
	return i - 1, j
}

func (v *vm) strByte(L *lua.LState) int {
	s := L.CheckString(1)
	i := L.OptInt(2, 1)
	from, to := span(len(s), i, L.OptInt(3, i))
	if to-from > maxResults {
		L.RaiseError("cannot return %d bytes: the limit is %d", to-from, maxResults)
	}
	for _, c := range []byte(s[from:to]) {
		L.Push(lua.LNumber(c))
	}
	return to - from
}

func (v *vm) strChar(L *lua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		c := L.CheckInt(i + 1)
		if c < 0 || c > 255 {
			L.ArgError(i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	v.pushString(L, string(b))
	return 1
}

func (v *vm) strLen(L *lua.LState) int {
	L.Push(lua.LNumber(len(L.CheckString(1))))
	return 1
}

func (v *vm) strSub(L *lua.LState) int {
	s := L.CheckString(1)
	from, to := span(len(s), L.CheckInt(2), L.OptInt(3, -1))
	L.Push(lua.LString(v.values.parts.Of(s[from:to], s)))
	return 1
}

func (v *vm) strRep(L *lua.LState) int {
	s := L.CheckString(1)
	n := L.CheckNumber(2)
	if n <= 0 || s == "" || n != n {
		L.Push(lua.LString(""))
		return 1
	}
	size := float64(len(s)) * math.Floor(float64(n))
	v.must(L, v.budget.chargeString(int64(min(size, math.MaxInt64/2))))
	L.Push(lua.LString(strings.Repeat(s, int(n))))
	return 1
}

func (v *vm) strMap(f func(string) string) lua.LGFunction {
	return func(L *lua.LState) int {
		s := L.CheckString(1)
		v.must(L, v.budget.chargeString(int64(len(s))))
		L.Push(lua.LString(f(s)))
		return 1
	}
}

func reverse(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

// newMatcher returns a matcher whose steps count against the call's limits.
func (v *vm) newMatcher(s, p string) *matcher {
	return &matcher{src: s, pat: p, look: func() error { return v.budget.charge(stepsPerLook / 8) }}
}

func initPos(L *lua.LState, arg, n int) int {
	i := L.OptInt(arg, 1)
	if i < 0 {
		i = max(n+i+1, 1)
	}
	return max(i, 1) - 1
}

func (v *vm) strFind(L *lua.LState) int {
	s, p := L.CheckString(1), L.CheckString(2)
	init := initPos(L, 3, len(s))
	if init > len(s) {
		L.Push(lua.LNil)
		return 1
	}
	if lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(p, "^$*+?.([%-") {
		i := strings.Index(s[init:], p)
		if i < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(init + i + 1))
		L.Push(lua.LNumber(init + i + len(p)))
		return 2
	}
	m := v.newMatcher(s, p)
	start, end := m.find(init)
	v.must(L, m.err)
	if start < 0 {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(start + 1))
	L.Push(lua.LNumber(end))
	for i := range m.level {
		v.pushCapture(L, m, i, start, end)
	}
	return 2 + m.level
}

func (v *vm) strMatch(L *lua.LState) int {
	s, p := L.CheckString(1), L.CheckString(2)
	init := initPos(L, 3, len(s))
	if init > len(s) {
		L.Push(lua.LNil)
		return 1
	}
	m := v.newMatcher(s, p)
	start, end := m.find(init)
	v.must(L, m.err)
	if start < 0 {
		L.Push(lua.LNil)
		return 1
	}
	for i := range m.captures() {
		v.pushCapture(L, m, i, start, end)
	}
	return m.captures()
}

func (v *vm) pushCapture(L *lua.LState, m *matcher, i, s, e int) {
	text, pos, err := m.captured(i, s, e)
	v.must(L, err)
	if pos > 0 {
		L.Push(lua.LNumber(pos))
		return
	}
	L.Push(lua.LString(v.values.parts.Of(text, m.src)))
}

func (v *vm) strGmatch(L *lua.LState) int {
	m := v.newMatcher(L.CheckString(1), L.CheckString(2))
	pos := 0
	L.Push(L.NewClosure(func(L *lua.LState) int {
		for ; pos <= len(m.src); pos++ {
			m.level = 0
			e := m.match(pos, 0)
			v.must(L, m.err)
			if e < 0 {
				continue
			}
			s := pos
			pos = e
			if e == s {
				pos++ // an empty match must not be found again
			}
			for i := range m.captures() {
				v.pushCapture(L, m, i, s, e)
			}
			return m.captures()
		}
		L.Push(lua.LNil)
		return 1
	}, L.Get(1))) // an upvalue, so that it is known to be held
	return 1
}

func (v *vm) strGsub(L *lua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	var repl lua.LValue = L.Get(3)
	switch r := repl.(type) {
	case lua.LString, *lua.LTable, *lua.LFunction:
	case lua.LNumber:
		repl = lua.LString(r.String())
	default:
		L.ArgError(3, "string, function or table expected, got "+repl.Type().String())
	}
	limit := L.OptInt(4, math.MaxInt)
	m := v.newMatcher(src, pat)
	p := 0
	anchor := strings.HasPrefix(pat, "^")
	if anchor {
		p = 1
	}
	var out []byte
	grow := func(s string) {
		if len(out)+len(s) > maxString {
			L.RaiseError("cannot make a string of more than %d bytes", maxString)
		}
		v.must(L, v.budget.chargeString(int64(len(s))))
		out = append(out, s...)
	}
	n, s, copied := 0, 0, 0 // src[:copied] is in out
	for n < limit {
		m.level = 0
		e := m.match(s, p)
		v.must(L, m.err)
		if e >= 0 {
			n++
			with, keep := v.replacement(L, m, repl, s, e)
			if !keep {
				grow(src[copied:s])
				grow(with)
				copied = e
			}
		}
		if e > s {
			s = e
		} else {
			s++
		}
		if s > len(src) || anchor {
			break
		}
	}
	if copied == 0 && out == nil {
		L.Push(lua.LString(src))
	} else {
		grow(src[copied:])
		L.Push(lua.LString(out))
	}
	L.Push(lua.LNumber(n))
	return 2
}

// replacement returns what gsub puts in place of a match; keep leaves it.
func (v *vm) replacement(L *lua.LState, m *matcher, repl lua.LValue, s, e int) (with string, keep bool) {
	var r lua.LValue
	switch f := repl.(type) {
	case lua.LString:
		return v.expand(L, m, string(f), s, e), false
	case *lua.LTable:
		text, pos, err := m.captured(0, s, e)
		v.must(L, err)
		var key lua.LValue = lua.LString(v.values.parts.Of(text, m.src))
		if pos > 0 {
			key = lua.LNumber(pos)
		}
		r = L.GetTable(f, key)
	case *lua.LFunction:
		L.Push(f)
		saved := *m // the callback may match with captures of its own
		for i := range m.captures() {
			v.pushCapture(L, m, i, s, e)
		}
		L.Call(m.captures(), 1)
		*m = saved
		r = L.Get(-1)
		L.Pop(1)
	}
	switch r := r.(type) {
	case lua.LString:
		return string(r), false
	case lua.LNumber:
		return r.String(), false
	}
	if lua.LVIsFalse(r) {
		return "", true
	}
	L.RaiseError("invalid replacement value (a %s)", r.Type().String())
	return "", true
}

// expand puts captures into a replacement string: %0 to %9, %%.
func (v *vm) expand(L *lua.LState, m *matcher, repl string, s, e int) string {
	if !strings.Contains(repl, "%") {
		return repl
	}
	var b []byte
	for i := 0; i < len(repl); i++ {
		c := repl[i]
		if c != '%' || i+1 == len(repl) {
			b = append(b, c)
			continue
		}
		i++
		switch c = repl[i]; {
		case c == '0':
			b = append(b, m.src[s:e]...)
		case c >= '1' && c <= '9':
			text, pos, err := m.captured(int(c-'1'), s, e)
			v.must(L, err)
			if pos > 0 {
				text = strconv.Itoa(pos)
			}
			b = append(b, text...)
		case (c|0x20) >= 'a' && (c|0x20) <= 'z':
			b = append(b, '%', c) // as gopher-lua has it; Lua 5.1 drops the sign, Lua 5.2 refuses it
		default:
			b = append(b, c)
		}
		if len(b) > maxString {
			L.RaiseError("cannot make a string of more than %d bytes", maxString)
		}
	}
	return string(b)
}
