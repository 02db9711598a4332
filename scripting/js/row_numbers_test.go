package js_test

import (
	"strings"
	"testing"
)

// TestRowNumbers: what batch.set and batch.drop find a record by.
func TestRowNumbers(t *testing.T) {
	f := func(row, want string) {
		t.Helper()
		for _, call := range []string{`batch.set(` + row + `, "value", 2)`, `batch.drop(` + row + `)`} {
			if got := failure(t, call).Err.Error(); !strings.HasPrefix(got, want) {
				t.Errorf("%s\n got %q\nwant %q", call, got, want)
			}
		}
	}
	const whole = ": its number is a whole number, as batch.rows gives it"
	f("0.5", "cannot find record 0.5"+whole)
	f("-0.5", "cannot find record -0.5"+whole)
	f("NaN", "cannot find record NaN"+whole)
	f("Infinity", "cannot find record Infinity"+whole)
	f("1e300", "cannot find record 1e+300"+whole)
	f("1", "cannot find record 1: the batch has 1, counted from 0")
	f("-1", "cannot find record -1: the batch has 1, counted from 0")
	const other = ": it is found by its number, as batch.rows gives it"
	f(`"0"`, "cannot find a record by a string"+other)
	f("null", "cannot find a record by null"+other)
	f("undefined", "cannot find a record by undefined"+other)
	f("batch[0]", "cannot find a record by an object"+other)
}
