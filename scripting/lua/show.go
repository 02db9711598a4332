package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// maxFlatTable is the length of a table that is shown in one line, in bytes.
const maxFlatTable = 70

var identifierRe = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func identifier(s string) bool { return identifierRe.MatchString(s) }

// shower writes values for people. It runs under the handler of the VM, because
// __tostring may be a function of the script.
type shower struct {
	v     *vm
	L     *lua.LState
	b     strings.Builder
	above []*lua.LTable
}

// text returns what was written, shortened to the limit.
func (w *shower) text() string {
	text := w.b.String()
	if len(text) <= scripting.MaxShownBytes {
		return text
	}
	return strings.ToValidUTF8(text[:scripting.MaxShownBytes], "") + "…"
}

// value writes a value that begins in a line with an indentation.
func (w *shower) value(x lua.LValue, indent string) {
	if w.b.Len() > scripting.MaxShownBytes {
		return
	}
	w.v.must(w.L, w.v.budget.charge(10))
	switch x := x.(type) {
	case lua.LString:
		quote(&w.b, string(x))
	case *lua.LTable:
		w.table(x, indent)
	case *lua.LFunction:
		w.function(x)
	case *lua.LUserData:
		w.userdata(x, indent)
	case *lua.LState:
		w.b.WriteString("coroutine")
	default:
		w.b.WriteString(w.v.tostring(w.L, x))
	}
}

// function writes the name of a function of weir, or the position of one of a script.
func (w *shower) function(fn *lua.LFunction) {
	w.b.WriteString("function")
	if name, ok := w.v.library.names[fn]; ok {
		w.b.WriteString(" " + name)
	} else if !fn.IsG {
		fmt.Fprintf(&w.b, " at %s:%d", fn.Proto.SourceName, fn.Proto.LineDefined)
	}
}

// table writes the list part of a table and then the other keys, sorted.
func (w *shower) table(t *lua.LTable, indent string) {
	if f, ok := w.L.GetMetaField(t, "__tostring").(*lua.LFunction); ok && f != nil {
		w.b.WriteString(w.v.tostring(w.L, t))
		return
	}
	t = w.v.readOnly.real(t)
	switch {
	case slices.Contains(w.above, t):
		w.b.WriteString("{ …, contains itself }")
		return
	case len(w.above) == scripting.MaxShownDepth:
		w.b.WriteString("{ … }")
		return
	}
	w.above = append(w.above, t)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	items, more := w.items(t)
	parts := make([]string, 0, len(items)+1)
	flat := 0
	for _, it := range items {
		inner := &shower{v: w.v, L: w.L, above: w.above}
		inner.value(it.value, indent+"  ")
		parts = append(parts, it.key+inner.text())
		flat += len(parts[len(parts)-1]) + 2
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("… and %d more", more))
		flat += 20
	}
	switch {
	case len(parts) == 0:
		w.b.WriteString("{}")
	case flat <= maxFlatTable && !strings.Contains(strings.Join(parts, ""), "\n"):
		w.b.WriteString("{ " + strings.Join(parts, ", ") + " }")
	default:
		w.b.WriteString("{\n")
		for _, p := range parts {
			w.b.WriteString(indent + "  " + p + ",\n")
		}
		w.b.WriteString(indent + "}")
	}
}

// item is a value of a table, with its key as text.
type item struct {
	key   string // with " = " at its end; "" in a list
	value lua.LValue
}

// items returns the first items of a table and the number of other items.
func (w *shower) items(t *lua.LTable) (out []item, more int) {
	n := t.Len()
	for i := 1; i <= min(n, scripting.MaxShownItems); i++ {
		out = append(out, item{"", t.RawGetInt(i)})
	}
	var keyed []item
	for k, x := range entries(t) {
		w.v.must(w.L, w.v.budget.charge(1))
		if i, ok := k.(lua.LNumber); ok && float64(i) == float64(int(i)) && int(i) >= 1 && int(i) <= n {
			continue
		}
		keyed = append(keyed, item{w.key(k), x})
	}
	slices.SortFunc(keyed, func(a, b item) int { return strings.Compare(a.key, b.key) })
	more = n - len(out) + len(keyed)
	keyed = keyed[:min(len(keyed), scripting.MaxShownItems-len(out))]
	return append(out, keyed...), more - len(keyed)
}

func (w *shower) key(k lua.LValue) string {
	if s, ok := k.(lua.LString); ok {
		if identifier(string(s)) {
			return string(s) + " = "
		}
		return "[" + strconv.Quote(string(s)) + "] = "
	}
	inner := &shower{v: w.v, L: w.L, above: w.above}
	inner.value(k, "")
	return "[" + inner.text() + "] = "
}

// userdata writes a value of weir: a batch with its records, another one as text.
func (w *shower) userdata(x *lua.LUserData, indent string) {
	w.b.WriteString(w.v.tostring(w.L, x))
	var s scripting.Statement
	switch x.Value.(type) {
	case batchHandle:
		s.Metrics = w.v.call.metrics
	case logsHandle:
		s.Logs = w.v.call.logs
	default:
		return
	}
	limit := scripting.MaxShownRows
	if len(w.above) > 0 {
		return
	}
	rows, more := s.ShownRows(limit)
	for _, row := range rows {
		w.b.WriteString("\n" + indent + "  " + row)
	}
	if more > 0 {
		fmt.Fprintf(&w.b, "\n%s  … and %d more", indent, more)
	}
}

// typeOf returns the type of a value of weir in the API; nil if it has none.
func typeOf(x *lua.LUserData) *scripting.ObjectType {
	t := api.Get()
	switch o := x.Value.(type) {
	case batchHandle:
		return t.Batch
	case logsHandle:
		return t.Logs
	case *record:
		return t.Record
	case *line:
		return t.Line
	case *copied:
		return t.Copy
	case *copiedLine:
		return t.LineCopy
	case *scripting.Object:
		return o.Type
	}
	return nil
}
