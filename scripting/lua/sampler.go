package lua

import (
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// sampler takes the samples of a profiled call. budget.Done calls step before
// every instruction, and not only before every slice: a sample must name the
// line that took the time, which may be one library call among many cheap
// instructions.
type sampler struct {
	v     *vm
	p     *scripting.Profile
	seen  int64 // ticks that were sampled
	rest  int64 // instructions until the limits are checked
	stack []scripting.Frame
}

// newSampler returns the sampler of a call, nil if it is not profiled.
func (v *vm) newSampler(p *scripting.Profile) *sampler {
	if p == nil {
		return nil
	}
	s := &sampler{v: v, p: p}
	s.skip()
	return s
}

// start checks the limits after so many instructions, and returns the number of
// instructions until step is called.
func (s *sampler) start(instructions int64) int64 {
	s.rest = instructions
	return 1
}

// skip leaves out the time until now.
func (s *sampler) skip() { s.seen = s.p.Ticks() }

// step takes a sample if one is due. It reports false if the limits must be
// checked.
func (s *sampler) step() bool {
	if ticks := s.p.Ticks(); ticks != s.seen {
		s.sample(ticks - s.seen)
		s.seen = ticks
	}
	s.rest--
	return s.rest > 0
}

// sample adds the stack of the running thread, and of those that resumed it.
func (s *sampler) sample(n int64) {
	s.stack = s.stack[:0]
	for L := s.v.L.G.CurrentThread; L != nil; L = L.Parent {
		for level := 0; ; level++ {
			d, ok := L.GetStack(level)
			if !ok {
				break
			}
			x, err := L.GetInfo("fnSl", d, lua.LNil)
			fn, ok := x.(*lua.LFunction)
			if err != nil || !ok || fn.IsG || d.CurrentLine <= 0 {
				continue
			}
			f := scripting.Frame{File: d.Source, Line: d.CurrentLine, Func: functionName(d)}
			if len(s.stack) == 0 {
				f.Line = executedLine(d, fn.Proto)
			}
			s.stack = append(s.stack, f)
		}
	}
	if n := len(s.stack); n > 0 && s.v.call.hook != "" && s.v.call.stage != inEach {
		s.stack[n-1].Func = s.v.call.hook
	}
	s.p.Add(n, s.stack)
}

// functionName returns the name by which a function was called, or where it is.
func functionName(d *lua.Debug) string {
	switch {
	case d.LineDefined == 0:
		return "main chunk"
	case d.Name == "" || d.Name == "?" || strings.ContainsAny(d.Name, "<( "):
		return "function of line " + strconv.Itoa(d.LineDefined)
	}
	return d.Name
}

// executedLine returns the line of the instruction that the innermost function
// executed last. Usually that is the line of the next one, but after a call that
// ends a line it is the previous line.
func executedLine(d *lua.Debug, p *lua.FunctionProto) int {
	next := nextInstruction(d) - 1
	if next < 1 || next >= len(p.Code) || next >= len(p.DbgSourcePositions) || isLoopHead(p.Code, next) {
		return d.CurrentLine
	}
	switch int(p.Code[next-1] >> 26) {
	case lua.OP_CALL, lua.OP_TFORLOOP, lua.OP_CONCAT, lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SETTABLE, lua.OP_SETTABLEKS, lua.OP_SELF:
		return p.DbgSourcePositions[next-1]
	}
	return d.CurrentLine
}

// isLoopHead reports whether a later instruction jumps to the instruction at
// index, so that the previous instruction need not be the one that was executed.
func isLoopHead(code []uint32, index int) bool {
	for i := index; i < len(code); i++ {
		switch int(code[i] >> 26) {
		case lua.OP_JMP, lua.OP_FORLOOP:
			const zero = 1<<17 - 1 // the distance of a jump is stored plus this
			if i+1+int(code[i]&(1<<18-1))-zero == index {
				return true
			}
		}
	}
	return false
}
