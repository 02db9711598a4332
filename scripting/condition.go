package scripting

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/weir-run/weir/engine/expr"
)

// RecordField is a field of a record in the condition of a script.
type RecordField struct {
	Name string // as an expression reads it: name, type, value, line or labels.x
	// Maybe means that the script reads a missing label as nil, not as "".
	Maybe bool
}

// NewRecordField returns a field of a record, or nil if an expression reads it
// in another way.
func NewRecordField(name string) *RecordField {
	switch name {
	case "name", "type", "value", "line":
		return &RecordField{Name: name}
	}
	return nil
}

// plainText is a constant that needs no escapes in any language.
var plainText = regexp.MustCompile(`^[a-zA-Z0-9 !#$%&()*+,./:;<=>?@^_{|}~-]*$`)

// NewLabelField returns a label of a record, or nil.
func NewLabelField(label string) *RecordField {
	if label == "__name__" || !IsIdentifier(label) {
		return nil
	}
	return &RecordField{Name: "labels." + label, Maybe: true}
}

// OrEmpty returns the field in code that reads "" if it is missing, or nil.
func (f *RecordField) OrEmpty() *RecordField {
	if f == nil || !f.Maybe {
		return nil
	}
	return &RecordField{Name: f.Name}
}

// Condition is a condition of a script on one record, as an expression that has
// the same result for every record.
//
// An expression that reads value is false for a staleness marker and for a native
// histogram. The condition of the script must be false for them too: it consists
// only of comparisons of the value, none of which is negated. Their result is
// false for the NaN of a staleness marker, and in JavaScript for the undefined of
// a native histogram. In Lua the value is nil, and the comparison is an error.
type Condition struct {
	text   string
	values bool // it reads value
	lines  bool // it reads line
	simple bool // it needs no parentheses
}

// Is returns a comparison with a constant, or nil if it is not the same in an
// expression. op is an operator of expressions.
func (f *RecordField) Is(op string, constant Value) *Condition {
	if f == nil {
		return nil
	}
	equality := op == "==" || op == "!="
	switch c := constant.(type) {
	case float64:
		if f.Name == "value" && op != "!=" && !math.IsNaN(c) && !math.IsInf(c, 0) {
			return &Condition{text: "value " + op + " " + strconv.FormatFloat(c, 'f', -1, 64), values: true, simple: true}
		}
	case string:
		unlike := f.Name == "type" && (c == "" || c == "unknown")
		if f.Name != "value" && equality && plainText.MatchString(c) && !unlike && (c != "" || !f.Maybe) {
			return &Condition{text: fmt.Sprintf("%s %s %q", f.Name, op, c), lines: f.Name == "line", simple: true}
		}
	case nil:
		if f.Maybe && equality {
			return &Condition{text: f.Name + " " + op + ` ""`, simple: true}
		}
	}
	return nil
}

// Has returns a test for a part of a text, or nil. op is startsWith, endsWith or
// contains.
func (f *RecordField) Has(op, part string) *Condition {
	if f == nil || f.Maybe || f.Name == "value" || f.Name == "type" || part == "" || !plainText.MatchString(part) {
		return nil
	}
	return &Condition{text: fmt.Sprintf("%s %s %q", f.Name, op, part), lines: f.Name == "line", simple: true}
}

// Not returns the negation, or nil.
func (c *Condition) Not() *Condition {
	if c == nil || c.values {
		return nil
	}
	return &Condition{text: "!(" + c.text + ")", lines: c.lines, simple: true}
}

// Join returns two conditions joined by && or ||, or nil.
func (c *Condition) Join(op string, d *Condition) *Condition {
	if c == nil || d == nil || c.values != d.values {
		return nil
	}
	return &Condition{text: c.inside() + " " + op + " " + d.inside(), values: c.values, lines: c.lines || d.lines}
}

func (c *Condition) inside() string {
	if c.simple {
		return c.text
	}
	return "(" + c.text + ")"
}

// Expression returns the expression for records of metrics, or of logs, or "" if
// there is none.
func (c *Condition) Expression(logs bool) string {
	if c == nil {
		return ""
	}
	compile := expr.Compile
	if logs {
		compile = expr.CompileLogs
	}
	if _, err := compile(c.text, expr.Bool, nil); err != nil {
		return "" // such as a label whose name is a word of the language
	}
	return c.text
}

// Gain returns how many times as fast as each drop_where is.
// docs/lint.md describes the measurement.
func (c *Condition) Gain() int {
	if c.lines || c.values {
		return 4
	}
	return 10
}

// SetLabel returns the call of an operation that sets a constant label, or "" if
// the value must be escaped or removes the label.
func SetLabel(operation, name, value string) string {
	if value == "" || !plainText.MatchString(value) {
		return ""
	}
	return fmt.Sprintf("%s(%q, %q)", operation, name, value)
}
