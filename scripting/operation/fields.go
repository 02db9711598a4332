package operation

import (
	"fmt"

	"github.com/weir-run/weir/engine/view"
)

// Fields are the fields of records that a script names, in its order, either of
// samples or of log lines.
type Fields struct {
	// Columns are fields of samples.
	Columns []Column
	// Judged means that the value is one of them: operations that judge skip
	// records without a value.
	Judged bool

	// Lines are fields of log lines.
	Lines *view.Projection
	// Nanos are the positions of ts, a time in Unix ns, in Lines.
	Nanos []int
}

// Len returns the number of fields.
func (f *Fields) Len() int {
	if f.Lines != nil {
		return f.Lines.Len()
	}
	return len(f.Columns)
}

// Column is a field of samples.
type Column struct {
	Kind   ColumnKind
	Labels *view.Column // of LabelColumn
}

// ColumnKind is the kind of data in a column.
type ColumnKind byte

// The kinds of columns.
const (
	LabelColumn ColumnKind = iota // a label, or the name
	ValueColumn
	TimeColumn
	TypeColumn
	StaleColumn
)

// ColumnOf returns the field of samples called name.
func ColumnOf(m *view.Metrics, name string) Column {
	switch name {
	case "value":
		return Column{Kind: ValueColumn}
	case "time":
		return Column{Kind: TimeColumn}
	case "type":
		return Column{Kind: TypeColumn}
	case "stale":
		return Column{Kind: StaleColumn}
	}
	return Column{Kind: LabelColumn, Labels: m.Column(name)}
}

// MaxFields is the maximum number of fields in an operation.
const MaxFields = 32

// fields returns the fields that an argument names. format is the format of
// lines, "json" or "logfmt", in which names are paths; "" stands for fields of
// records.
func (c *Call) fields(format string, arg int) (Fields, error) {
	names := c.Names(arg)
	if c.Logs != nil {
		p, err := c.Logs.Projection(format, names)
		f := Fields{Lines: p}
		for i, name := range names {
			if name == "ts" && format == "" {
				f.Nanos = append(f.Nanos, i)
			}
		}
		return f, err
	}
	if len(names) == 0 || len(names) > MaxFields {
		return Fields{}, fmt.Errorf("cannot read %d fields: name between 1 and %d", len(names), MaxFields)
	}
	f := Fields{Columns: make([]Column, len(names))}
	for i, name := range names {
		f.Columns[i] = ColumnOf(c.Metrics, name)
		f.Judged = f.Judged || f.Columns[i].Kind == ValueColumn
	}
	return f, nil
}
