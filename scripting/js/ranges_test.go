package js_test

import "testing"

// TestRanges holds the limits of single functions of the language, which 'weir help
// js' names: each is an error that a script can catch.
func TestRanges(t *testing.T) {
	var e exprs
	f := e.add
	f(`BigInt("9".repeat(10001))`, "RangeError: cannot make a BigInt of 10001 characters: the limit is 10000")
	f(`BigInt({ toString: () => "9".repeat(10001) })`, "RangeError: cannot make a BigInt of 10001 characters: the limit is 10000")
	f(`String(BigInt("9".repeat(100))).length`, "100")
	f(`BigInt.asUintN(65537, 1n)`, "RangeError: cannot take 65537 bits: the limit is 65536")
	f(`BigInt.asIntN(65536, 1n)`, "1")
	f(`Array.from({ length: 2 ** 20 + 1 }).length`, "RangeError: cannot go over a list of 1048577 items: the limit is 1048576")
	f(`"x".repeat(2 ** 20 + 1).split("").length`, "RangeError: cannot go over a list of 1048578 items: the limit is 1048576")
	f(`"x".padEnd(2 ** 30)`, "RangeError: cannot make a string of 1073741824 characters: the limit is 8388608")
	f(`new Array(9).fill("x".repeat(2 ** 20)).join("")`, "RangeError: cannot make a string of 9437184 characters: the limit is 8388608")
	f(`"".concat(...new Array(9).fill("x".repeat(2 ** 20)))`, "RangeError: cannot make a string of 9437184 characters: the limit is 8388608")
	f(`JSON.parse("[".repeat(1001) + "]".repeat(1001))`, "RangeError: cannot parse JSON that nests deeper than 1000 levels")
	f(`JSON.parse("[".repeat(900) + "]".repeat(900)).length`, "1")
	f(`new RegExp("a".repeat(8193))`, "SyntaxError: cannot compile a pattern of 8193 characters: the limit is 8192")
	f(`new Uint8Array(2 ** 30)`, "RangeError")
	e.run(t, "a 1\n", "")
}
