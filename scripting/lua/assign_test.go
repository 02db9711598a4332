package lua_test

import "testing"

// TestCallsToTheLastParameter: gopher-lua 1.1.2 overwrites the last parameter of
// a function with the function whose result it is to become.
func TestCallsToTheLastParameter(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		for _, params := range []string{"s", "a, s"} {
			args := map[string]string{"s": `"abc"`, "a, s": `0, "abc"`}[params]
			n := build(t, metrics(`
				local function f(`+params+`) local a, b, c; `+body+` return s end
				batch:set_label("s", tostring(f(`+args+`)))`), "")
			if got, want := n.send(t, "m 1\n"), "m{s=\""+want+"\"} 1\n"; got != want {
				t.Errorf("function(%s) %s: got %q, want %q; %s", params, body, got, want, n.Health().Message)
			}
		}
	}
	f(`s = (s:gsub("b", "x"))`, "axc")
	f(`s = s:gsub("b", "x")`, "axc")
	f(`s = s:sub(2) .. s:sub(1, 1)`, "bca")
	f(`s = "<" .. s .. ">"`, "<abc>")
	f(`s = string.upper(s) .. string.lower(s)`, "ABCabc")
	f(`s = (s .. "x"):upper()`, "ABCX")
	f(`s = s and (s:upper()) or s .. "x"`, "ABC")
	f(`s = not s and s .. "y" or s .. "x"`, "abcx")
	// with others
	f(`s, a = s:upper(), s .. "x"; s = s .. a`, "ABCabcx")
	f(`a, s = s:len(), s:upper(); s = s .. a`, "ABC3")
	f(`s, a = (s:gsub("b", "x")); s = s .. tostring(a)`, "axcnil")
	f(`a, s, b = 1, (s:gsub("b", "x")); s = s .. tostring(b)`, "axcnil")
	f(`a, s, b = 1, s:gsub("b", "x"); s = s .. tostring(b)`, "axc1")
	f(`s = s:upper(), s:lower()`, "ABC")
	f(`local t = {}; t.x, s = s:upper(), (s:len()); s = t.x .. s`, "ABC3")
	// where there is nothing to get wrong
	f(`c = s .. "x"; s = c`, "abcx")
	f(`do local s = s .. "x"; c = s end s = c`, "abcx")
	f(`local g = function() s = s .. "x" end g()`, "abcx")
}
