package js_test

import "testing"

// TestLabelValues: what a label is set to that is not a string. Numbers that are
// not finite are written as in Lua, so that a series does not depend on the
// language of the script.
func TestLabelValues(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		set := func(how string) {
			t.Helper()
			if want != "" {
				equal(t, build(t, checked(how), "").send(t, "a 1\n"), "a{x=\""+want+"\"} 1\n")
			} else {
				equal(t, build(t, checked(how), "").send(t, "a 1\n"), "a 1\n")
			}
		}
		set("batch.setLabel('x', " + value + ")")
		set("batch.set(0, 'x', " + value + ")")
		set("for (const m of batch) m.labels.x = " + value)
		set("for (const m of batch) m.labels = { x: " + value + " }")
	}
	f("NaN", "nan")
	f("Infinity", "inf")
	f("-Infinity", "-inf")
	f("new Number(1 / 0).valueOf()", "inf")
	f("-0", "0")
	f("1.5", "1.5")
	f("10n", "10")
	f("true", "true")
	f("false", "false")
	f("null", "")
	f("undefined", "")
	f("'NaN'", "NaN")
}
