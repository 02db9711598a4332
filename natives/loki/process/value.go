package process

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/scan"
)

// kind is what an extracted value is.
type kind uint8

const (
	unset  kind = iota // no stage extracted it: the label of that name counts
	gone               // a stage removed it
	null               // it is there, and is no text
	text               // as it was found
	number             // in decimal
	truth              // true or false
)

// value is an extracted value. Its text may be a part of a batch's memory.
type value struct {
	kind kind
	text string
}

// plain is a value that is text.
func plain(s string) value { return value{text, s} }

// exists reports whether the value is one of the extracted, though it may be null.
func (v value) exists() bool { return v.kind > gone }

// str returns the value as text; ok is false when it is null or not there.
func (v value) str() (s string, ok bool) { return v.text, v.kind > null }

// num returns the value as a number; ok is false if it is none.
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

// fromJSON is what a value of JSON is among the extracted: what is not there is
// null. Integers stay as they were written, other numbers lose their exponent;
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

// formatNumber is how a number becomes text: without an exponent.
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
