package process

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/scan"
)

// kind is the type of an extracted value.
type kind uint8

const (
	unset  kind = iota // not extracted: the label of that name is used
	gone               // removed by a stage
	null               // extracted, but not text
	text               // unchanged text
	number             // in decimal
	truth              // true or false
)

// value is an extracted value. Its text may refer to the memory of a batch.
type value struct {
	kind kind
	text string
}

// plain returns a text value.
func plain(s string) value { return value{text, s} }

// exists reports whether the value was extracted. It may be null.
func (v value) exists() bool { return v.kind > gone }

// str returns the value as text. ok is false if it is null or does not exist.
func (v value) str() (s string, ok bool) { return v.text, v.kind > null }

// num returns the value as a number. ok is false if it is not a number.
func (v value) num() (f float64, ok bool) {
	switch v.kind {
	case text, number:
		f, err := strconv.ParseFloat(v.text, 64)
		return f, err == nil
	case truth:
		if v.text == "true" {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// fromJSON returns the extracted value for a JSON value. A missing value is null.
// Integers keep their digits, other numbers are written without an exponent, and
// objects and lists are JSON without spaces.
func fromJSON(v scan.Value) value {
	switch v.Kind {
	case scan.Text:
		return value{text, v.Text}
	case scan.Number:
		if strings.ContainsAny(v.Text, ".eE") && !math.IsInf(v.Num, 0) {
			return value{number, formatNumber(v.Num)}
		}
		return value{number, v.Text}
	case scan.Bool:
		return value{truth, v.Text}
	case scan.Raw:
		return value{text, compactJSON(v.Text)}
	}
	return value{kind: null}
}

// formatNumber formats a number without an exponent.
func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// compactJSON returns JSON without the spaces between its parts.
func compactJSON(s string) string {
	if !strings.ContainsAny(s, " \t\r\n") {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}
