package lua

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// A record that `each` passes to its callback is a handle: every read of it is a
// call into the host, about 100 ns. Most callbacks only read m.value or
// m.labels.job and do not keep m, as their code shows. They run as a copy in which
// such a read is the index of a table, the cursor. It is filled for each record
// with the fields that the callback reads. A VM has one cursor per callback. A
// callback that may keep the record gets handles.

// projection is the copy of a callback.
type projection struct {
	proto  *lua.FunctionProto
	reads  []lua.LString // fields as rows names them; the i-th is index i+1 of the cursor
	writes []string      // fields; the i-th is index len(reads)+i+1, where nothing ever is
	rest   bool          // it reads other fields
	cursor *cursor       // made when it is first used
}

// cursor is the record of a projection.
type cursor struct {
	v     *vm
	of    *projection
	table *lua.LTable
	clean *lua.LTable // metatable while all that is read is in table
	dirty *lua.LTable // metatable when the row was changed behind its back

	win  *view.Metrics // nil between records
	row  int
	cols []operation.Column
}

// registers of a callback's code.
const (
	record0   = 0   // the first parameter
	isConst   = 256 // set in an operand: a constant
	maxConsts = 256 // that an operand can name
)

type instruction uint32

func (i instruction) op() int { return int(i >> 26) }
func (i instruction) a() int  { return int(i>>18) & 0xff }
func (i instruction) b() int  { return int(i & 0x1ff) }
func (i instruction) c() int  { return int(i>>9) & 0x1ff }

func newInstruction(op, a, b, c int) uint32 {
	return uint32(op<<26 | a<<18 | c<<9 | b)
}

// keeps reports whether an instruction does anything with the record but read a
// field, write one, or call a method: then it may get away.
func (i instruction) keeps() bool {
	a, b, c := i.a() == record0, i.b() == record0, i.c() == record0
	switch i.op() {
	case lua.OP_GETTABLEKS, lua.OP_SELF:
		return a
	case lua.OP_SETTABLEKS:
		return c
	case lua.OP_LOADK, lua.OP_LOADBOOL, lua.OP_GETUPVAL, lua.OP_GETGLOBAL, lua.OP_SETGLOBAL, lua.OP_SETUPVAL,
		lua.OP_NEWTABLE, lua.OP_CALL, lua.OP_TAILCALL, lua.OP_FORLOOP, lua.OP_FORPREP, lua.OP_TFORLOOP,
		lua.OP_SETLIST, lua.OP_CLOSURE, lua.OP_VARARG, lua.OP_LOADNIL:
		return a
	case lua.OP_MOVE, lua.OP_MOVEN, lua.OP_UNM, lua.OP_NOT, lua.OP_LEN, lua.OP_TESTSET, lua.OP_CONCAT:
		return a || b
	case lua.OP_GETTABLE, lua.OP_SETTABLE, lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD, lua.OP_POW:
		return a || b || c
	case lua.OP_EQ, lua.OP_LT, lua.OP_LE:
		return b || c
	case lua.OP_RETURN:
		return a && i.b() != 1
	case lua.OP_JMP, lua.OP_TEST, lua.OP_CLOSE, lua.OP_NOP:
		return false
	}
	return true
}

// scalar are the fields that a cursor has in addition to labels.
var scalar = map[string]bool{"name": true, "value": true, "time": true, "type": true, "stale": true}

// project returns the copy of a callback, nil when its code may keep the record.
func project(p *lua.FunctionProto) *projection {
	if p.NumParameters < 1 || p.IsVarArg != 0 {
		return nil
	}
	entered := map[int]bool{} // where jumps lead
	for pc, inst := range p.Code {
		i := instruction(inst)
		if i.keeps() {
			return nil
		}
		switch i.op() {
		case lua.OP_JMP, lua.OP_FORLOOP, lua.OP_FORPREP:
			entered[pc+1+int(inst&0x3ffff)-(1<<17-1)] = true
		case lua.OP_EQ, lua.OP_LT, lua.OP_LE, lua.OP_TEST, lua.OP_TFORLOOP, lua.OP_LOADBOOL:
			entered[pc+2] = true
		case lua.OP_SELF:
			if i.b() == record0 && !isMethod(constant(p, i.c())) {
				return nil
			}
		}
	}
	proto := *p
	proto.Code = append([]uint32(nil), p.Code...)
	proto.Constants = append([]lua.LValue(nil), p.Constants...)
	pr := &projection{proto: &proto}
	// Writes have indexes behind the reads, so they are numbered afterwards.
	type write struct{ pc, field int }
	var writes []write
	for pc, inst := range p.Code {
		i := instruction(inst)
		if i.op() == lua.OP_SETTABLEKS && i.a() == record0 {
			if field := key(p, pc, entered); scalar[field] {
				writes = append(writes, write{pc, pr.write(field)})
			}
			continue
		}
		if i.op() != lua.OP_GETTABLEKS || i.b() != record0 {
			continue
		}
		field := constant(p, i.c())
		if scalar[field] {
			proto.Code[pc] = newInstruction(lua.OP_GETTABLE, i.a(), record0, pr.read(field))
			continue
		}
		if field != "labels" {
			continue
		}
		next, label := labelUse(p, pc, entered)
		if label == "" {
			continue
		}
		n := instruction(p.Code[next])
		if n.op() == lua.OP_GETTABLEKS {
			proto.Code[pc] = newInstruction(lua.OP_NOP, 0, 0, 0)
			proto.Code[next] = newInstruction(lua.OP_GETTABLE, n.a(), record0, pr.read("labels."+label))
			continue
		}
		proto.Code[pc] = newInstruction(lua.OP_NOP, 0, 0, 0)
		writes = append(writes, write{next, pr.write("labels." + label)})
	}
	for _, w := range writes {
		n := instruction(p.Code[w.pc])
		proto.Code[w.pc] = newInstruction(lua.OP_SETTABLE, record0, pr.index(len(pr.reads)+w.field), n.c())
	}
	if len(proto.Constants) > maxConsts {
		return nil
	}
	for _, inst := range proto.Code {
		i := instruction(inst)
		pr.rest = pr.rest || i.op() == lua.OP_GETTABLEKS && i.b() == record0
	}
	return pr
}

// labelUse finds the one instruction that uses the value that pc read, m.labels: a
// read or a write of a label whose name is in the code. label is "" if there is no
// such instruction.
func labelUse(p *lua.FunctionProto, pc int, entered map[int]bool) (next int, label string) {
	reg := instruction(p.Code[pc]).a()
	for next = pc + 1; next < len(p.Code) && !entered[next]; next++ {
		i := instruction(p.Code[next])
		a, b, c := i.a(), i.b(), i.c()
		used := false
		switch i.op() {
		case lua.OP_GETTABLEKS:
			if b == reg && a == reg { // else it is a local: local l = m.labels
				return next, constant(p, c)
			}
			used = b == reg
		case lua.OP_SETTABLEKS:
			if a == reg && c != reg && reg >= locals(p, next) {
				return next, key(p, next, entered)
			}
			return 0, ""
		// Instructions between m.labels and = in m.labels.x = y: they fill registers
		// behind that of m.labels with x and the parts of y.
		case lua.OP_LOADK, lua.OP_GETUPVAL, lua.OP_GETGLOBAL, lua.OP_NEWTABLE, lua.OP_CALL, lua.OP_LOADNIL:
		case lua.OP_LOADBOOL:
			used = c != 0
		case lua.OP_GETTABLE, lua.OP_SELF, lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD, lua.OP_POW:
			used = b == reg || c == reg
		case lua.OP_MOVE, lua.OP_UNM, lua.OP_NOT, lua.OP_LEN:
			used = b == reg
		default:
			return 0, ""
		}
		if used || a <= reg {
			return 0, ""
		}
	}
	return 0, ""
}

// key is the name that the write at pc has in the code: a constant, or a
// register into which one was loaded before what is written was made.
func key(p *lua.FunctionProto, pc int, entered map[int]bool) string {
	b := instruction(p.Code[pc]).b()
	if b&isConst != 0 {
		return constant(p, b)
	}
	for at := pc; at > 0 && !entered[at]; {
		at--
		i := instruction(p.Code[at])
		switch {
		case i.op() == lua.OP_LOADK && i.a() == b:
			s, _ := p.Constants[i&0x3ffff].(lua.LString)
			return string(s)
		case i.a() <= b: // it may write to b, or lead elsewhere
			return ""
		}
	}
	return ""
}

// locals is how many registers are local variables at pc: those behind are
// used once.
func locals(p *lua.FunctionProto, pc int) (n int) {
	for _, l := range p.DbgLocals {
		if l.StartPc <= pc && pc < l.EndPc {
			n++
		}
	}
	return n
}

// constant is the string that an operand names, "" when it is a register.
func constant(p *lua.FunctionProto, operand int) string {
	if operand&isConst == 0 {
		return ""
	}
	s, _ := p.Constants[operand&^isConst].(lua.LString)
	return string(s)
}

// read returns the operand that is the index of a field.
func (pr *projection) read(field string) int {
	for i, f := range pr.reads {
		if string(f) == field {
			return pr.index(i)
		}
	}
	pr.reads = append(pr.reads, lua.LString(field))
	return pr.index(len(pr.reads) - 1)
}

func (pr *projection) write(field string) int {
	for i, f := range pr.writes {
		if f == field {
			return i
		}
	}
	pr.writes = append(pr.writes, field)
	return len(pr.writes) - 1
}

// index returns the operand of the constant i+1.
func (pr *projection) index(i int) int {
	want := lua.LNumber(i + 1)
	for k, c := range pr.proto.Constants {
		if c == lua.LValue(want) {
			return k | isConst
		}
	}
	pr.proto.Constants = append(pr.proto.Constants, want)
	return (len(pr.proto.Constants) - 1) | isConst
}

// isMethod reports whether a record has a method of that name: a callback may
// call those on a record that it does not keep.
func isMethod(name string) bool {
	_, ok := api.Get().Record.Method(name)
	return ok
}

// projector runs callbacks of each as copies that read a cursor.
type projector struct {
	byProto map[*lua.FunctionProto]*projection // of callbacks; nil for those without one
	active  *cursor                            // of the callback that runs, nil without one
}

// cursorFor returns the cursor for a callback, nil if the callback may keep the record.
func (v *vm) cursorFor(m *view.Metrics, fn *lua.LFunction) *cursor {
	if fn.Proto == nil {
		return nil
	}
	pr, known := v.projector.byProto[fn.Proto]
	if !known {
		pr = project(fn.Proto)
		v.projector.byProto[fn.Proto] = pr
	}
	if pr == nil {
		return nil
	}
	if pr.cursor == nil {
		pr.cursor = v.newCursor(pr)
	}
	c := pr.cursor
	c.cols = c.cols[:0]
	for _, name := range pr.reads {
		c.cols = append(c.cols, operation.ColumnOf(m, string(name)))
	}
	return c
}

// function is fn as the projection, with the variables that fn sees.
func (pr *projection) function(fn *lua.LFunction) *lua.LFunction {
	return &lua.LFunction{Env: fn.Env, Proto: pr.proto, Upvalues: fn.Upvalues}
}

func (v *vm) newCursor(pr *projection) *cursor {
	L := v.L
	c := &cursor{v: v, of: pr, table: L.CreateTable(len(pr.reads), len(api.Get().Record.Methods))}
	for _, m := range v.bindOperations(api.Get().Record, func(L *lua.LState, call *operation.Call) {
		m := c.self(L)
		call.Window, call.Metrics, call.Logs, call.Record = &m.Window, m, nil, c.row
	}) {
		c.table.RawSetString(string(m.name), m.fn)
	}
	write := L.NewFunction(c.newIndex)
	c.clean, c.dirty = L.CreateTable(0, 1), L.CreateTable(0, 2)
	c.clean.RawSetString("__newindex", write)
	c.dirty.RawSetString("__newindex", write)
	c.dirty.RawSetString("__index", L.NewFunction(c.index))
	return c
}

// self is the window, for a method that was called with a colon.
func (c *cursor) self(L *lua.LState) *view.Metrics {
	if L.Get(1) != lua.LValue(c.table) || c.win == nil {
		panic("BUG: a cursor got away")
	}
	return c.win
}

// move puts the cursor on a row.
func (c *cursor) move(m *view.Metrics, row int) {
	c.win, c.row = m, row
	c.fill()
}

func (c *cursor) fill() {
	for i, col := range c.cols {
		c.table.RawSetInt(i+1, c.v.fieldValue(c.win, col, c.row))
	}
	c.table.Metatable = c.clean
	if c.of.rest {
		c.table.Metatable = c.dirty
	}
}

// release ends the use of the cursor's row.
func (c *cursor) release() {
	c.touch()
	c.win = nil
}

// touch is told that the row may be changed otherwise than through the cursor:
// from here on it is asked for what it has.
func (c *cursor) touch() {
	for i := range c.cols {
		c.table.RawSetInt(i+1, lua.LNil)
	}
	c.table.Metatable = c.dirty
}

// index reads what is not in the table.
func (c *cursor) index(L *lua.LState) int {
	if n, ok := L.Get(2).(lua.LNumber); ok {
		if i := int(n) - 1; i < len(c.cols) {
			L.Push(c.v.fieldValue(c.win, c.cols[i], c.row))
			return 1
		}
		panic("BUG: a cursor was read where it is written")
	}
	return c.v.values.recordField(L, c.win, c.v.newRecord(c.row), L.Get(2))
}

// newIndex is a write. It updates the fields that it changes.
func (c *cursor) newIndex(L *lua.LState) int {
	v, x := c.v, L.Get(3)
	var name string
	switch key := L.Get(2).(type) {
	case lua.LNumber:
		name = c.of.writes[int(key)-1-len(c.of.reads)]
	case lua.LString:
		name = string(key)
	}
	if label, ok := strings.CutPrefix(name, "labels."); ok {
		v.must(L, c.win.SetLabel(c.row, label, v.labelValue(L, x, label)))
	} else if name == "labels" {
		v.setLabels(L, v.newRecord(c.row), x)
	} else {
		v.setField(L, c.row, name, x, false)
	}
	for i, f := range c.of.reads {
		if string(f) == name || name == "labels" || name == "stale" {
			c.table.RawSetInt(i+1, v.fieldValue(c.win, c.cols[i], c.row))
		}
	}
	return 0
}
