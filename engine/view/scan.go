package view

import "github.com/weir-run/weir/engine/scan"

// Value is the value of a field of a line.
type Value = scan.Value

// The kinds of a Value. A JSON null is Missing.
const (
	Missing = scan.Missing
	Text    = scan.Text
	Number  = scan.Number
	Bool    = scan.Bool
	Raw     = scan.Raw
)
