package expr

import "github.com/expr-lang/expr/types"

// The tables in this file define the language: an expression can use only names
// that are in them. Manual prints them, and its test runs every example, so
// that nothing is added without a description.

// entry describes a name, an operator or a function.
type entry struct {
	name     string
	form     string // syntax; "": its name
	doc      string
	examples []example
}

// example is an expression and its result for the sample or the line that the
// manual shows. The result is formatted as in the manual: a string in quotes, a
// number, true or false, or "error: " with the message.
type example struct{ source, result string }

// ex returns the examples of pairs of sources and results.
func ex(pairs ...string) (out []example) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, example{pairs[i], pairs[i+1]})
	}
	return out
}

// variable is a name for a part of the record.
type variable struct {
	entry
	typ           types.Type
	samples, logs bool
}

var texts = types.TypeOf(map[string]string(nil))

var variables = []variable{
	{entry{"name", "", "The name of the metric, a string.", ex(`name == "http_requests_total"`, "true")}, types.String, true, false},
	{entry{"value", "", "The value of the sample, a number.", ex(`value > 10`, "true")}, types.Float64, true, false},
	{entry{"type", "", `The type of the metric: "counter", "gauge", "histogram", "summary" and so on, or "unknown".`, ex(`type == "counter"`, "true")}, types.String, true, false},
	{entry{"line", "", "The text of the log line, a string.", ex(`line contains "502"`, "true")}, types.String, false, true},
	{entry{"meta", "", `The structured metadata of the log line, a map of strings. A name that is missing is "".`, ex(`meta.trace_id != ""`, "true")}, texts, false, true},
	{entry{"labels", "", `The labels of the series or the stream, a map of strings. A label that is missing is "". The name of the metric is not among them: use name.`,
		ex(`labels.job`, `"api"`, `labels["job"]`, `"api"`, `labels.env == ""`, "true", `"env" in labels`, "false", `labels.env == "" ? "prod" : labels.env`, `"prod"`)}, texts, true, true},
	{entry{"time", "", "The timestamp in Unix milliseconds, a whole number.", ex(`time / 1000 < 1800000000`, "true")}, types.Int, true, true},
	{entry{"args", "", "The arguments of the script that has the expression, as constants: args.NAME. Durations are numbers of seconds. The components expr.* have no args.", ex(`labels.job in args.keep`, "true")}, types.Any, true, true},
}

// operators are in the order of the manual.
var operators = []entry{
	{"==", "a == b", "Whether two values are equal. A string never equals a number; comparing them is an error.",
		ex(`labels.job == "api"`, "true", `value == 12`, "true", `labels.status == 500`, "error: invalid operation: == (mismatched types string and int)")},
	{"!=", "a != b", "Whether two values differ.", ex(`labels.job != "api"`, "false")},
	{"<", "a < b", "Whether a number is less than another, or a string sorts before another. Strings are compared byte by byte.",
		ex(`value < 100`, "true", `"10" < "9"`, "true", `int("10") < int("9")`, "false")},
	{"<=", "a <= b", "Less than or equal. Comparisons can be chained.", ex(`10 <= value <= 20`, "true")},
	{">", "a > b", "Greater than.", ex(`value > 12`, "false")},
	{">=", "a >= b", "Greater than or equal.", ex(`int(labels.status) >= 500`, "true")},
	{"contains", "text contains part", "Whether a string has another one in it.", ex(`line contains "error"`, "false", `lower(line) contains "get"`, "true")},
	{"startsWith", "text startsWith prefix", "Whether a string begins with another.", ex(`name startsWith "http_"`, "true")},
	{"endsWith", "text endsWith suffix", "Whether a string ends with another.", ex(`name endsWith "_total"`, "true")},
	{"matches", "text matches pattern", `Whether a regular expression (RE2) matches anywhere in a string. It is not anchored, unlike the regex of a relabel rule: write ^ and $ to match the whole string. The pattern must be a constant. (?i) at its beginning ignores case.`,
		ex(`labels.path matches "users"`, "true", `labels.path matches "^users"`, "false", "labels.path matches `^/users/\\d+$`", "true", `labels.path matches "^/users/\\d+$"`, "true", `line matches "(?i)cart"`, "true",
			`name matches labels.path`, "error: matches takes a constant pattern")},
	{"in", "value in collection", "Whether a list has a value, a range has a number, or a map has a name.",
		ex(`labels.job in ["api", "web"]`, "true", `labels.job in args.keep`, "true", `int(labels.status) in 500..599`, "true", `"job" in labels`, "true")},
	{"and", "a and b, a && b", "Whether both are true. The second one is not evaluated if the first one is false.", ex(`value > 10 and labels.job == "api"`, "true")},
	{"or", "a or b, a || b", "Whether one of them is true. The second one is not evaluated if the first one is true.", ex(`value > 100 or labels.job == "api"`, "true")},
	{"not", "not a, !a", "Whether it is false. It binds more tightly than comparisons, so write brackets, or put it before in, contains, startsWith, endsWith and matches.",
		ex(`not (labels.job == "web")`, "true", `labels.job not in ["web"]`, "true", `line not contains "health"`, "true", `not labels.job == "web"`, "error: invalid operation: not (mismatched type string)")},
	{"+", "a + b", "The sum of two numbers, or two strings joined. A number does not become a string by itself: use string().",
		ex(`value + 1`, "13", `labels.job + ":" + labels.status`, `"api:500"`, `"n=" + string(value)`, `"n=12"`, `"n=" + value`, "error: invalid operation: + (mismatched types string and float64)")},
	{"-", "a - b, -a", "The difference of two numbers, or the negative of one.", ex(`value - 2`, "10", `-value`, "-12")},
	{"*", "a * b", "The product.", ex(`value * 1024`, "12288")},
	{"/", "a / b", "The quotient, always with its fraction. Division by zero gives Inf or NaN.", ex(`7 / 2`, "3.5", `value / 1000`, "0.012")},
	{"%", "a % b", "The remainder of two whole numbers. A value is not a whole number: use int().",
		ex(`int(value) % 5`, "2", `value % 5`, "error: invalid operation: % (mismatched types float64 and int)")},
	{"**", "a ** b, a ^ b", "A number raised to a power.", ex(`2 ** 3`, "8", `2 ** 3 ** 2`, "512")},
	{"..", "from..to", "A list of whole numbers, of which both bounds are constants.", ex(`3 in 1..5`, "true")},
	{"??", "a ?? b", `The first value unless it is nil. Labels and metadata are never nil, but "": see VALUES.`, ex(`first(filter(args.keep, # == "db")) ?? "none"`, `"none"`, `labels.env ?? "prod"`, "error: the left side of ?? is never nil: a missing label is \"\", so write labels.x != \"\" ? labels.x : \"default\"")},
	{"|", "a | function(…)", "Calls a function with the value on the left as its first argument.", ex(`labels.job | upper()`, `"API"`, `labels.path | trimPrefix("/") | upper()`, `"USERS/42"`)},
	{"? :", "condition ? a : b", "The first value if the condition is true, otherwise the second one.", ex(`value > 10 ? "high" : "low"`, `"high"`)},
	{"if", "if condition { a } else { b }", "The same, written differently.", ex(`if value > 10 { "high" } else { "low" }`, `"high"`)},
	{"[ ]", "list[i], map[name], text[from:to]", "An element of a list, which counts from 0 and with negative numbers from the end; a value of a map; a part of a string or a list.",
		ex(`split(labels.path, "/")[1]`, `"users"`, `split(labels.path, "/")[-1]`, `"42"`, `labels.path[1:6]`, `"users"`, `labels.status[:1] + "xx"`, `"5xx"`)},
	{".", "map.name", "The value of a map. The same as map[\"name\"]; use that form for names with characters other than letters, digits and _.", ex(`labels.job`, `"api"`, `labels["k8s.pod"] == ""`, "true")},
	{"?.", "map?.name", "The same as map.name here, since nothing that has names is nil.", ex(`labels?.job`, `"api"`)},
}

// function is a function of expr-lang that an expression may call.
type function struct {
	entry
	// predicate functions take an expression over the elements of a list.
	predicate bool
	// own functions replace those of expr-lang.
	own bool
}

func fn(name, form, doc string, examples ...string) function {
	return function{entry: entry{name, form, doc, ex(examples...)}}
}

func pred(name, form, doc string, examples ...string) function {
	f := fn(name, form, doc, examples...)
	f.predicate = true
	return f
}

// functions are the functions that an expression may call. Functions that read
// a clock are left out, because results may be cached, and functions whose
// result is a multiple of their input, because nested calls would fill the
// memory.
var functions = []function{
	fn("lower", "lower(text)", "The string in lower case.", `lower("GET")`, `"get"`),
	fn("upper", "upper(text)", "The string in upper case.", `upper(labels.job)`, `"API"`),
	fn("trim", "trim(text), trim(text, characters)", "The string without white space at both ends, or without the characters given.", `trim("  a ")`, `"a"`, `trim(labels.path, "/")`, `"users/42"`),
	fn("trimPrefix", "trimPrefix(text, prefix)", "The string without a prefix, if it has that.", `trimPrefix(labels.path, "/users/")`, `"42"`),
	fn("trimSuffix", "trimSuffix(text, suffix)", "The string without a suffix, if it has that.", `trimSuffix(name, "_total")`, `"http_requests"`),
	fn("hasPrefix", "hasPrefix(text, prefix)", "The same as startsWith.", `hasPrefix(name, "http_")`, "true"),
	fn("hasSuffix", "hasSuffix(text, suffix)", "The same as endsWith.", `hasSuffix(name, "_total")`, "true"),
	fn("indexOf", "indexOf(text, part)", "The position in bytes of the first occurrence, from 0; -1 if there is none.", `indexOf(labels.path, "/")`, "0", `indexOf(labels.path, "?")`, "-1"),
	fn("lastIndexOf", "lastIndexOf(text, part)", "The position in bytes of the last occurrence; -1 if there is none.", `lastIndexOf(labels.path, "/")`, "6"),
	fn("split", "split(text, separator), split(text, separator, n)", "The list of the parts of a string; n bounds the number of parts.", `split(labels.path, "/")[2]`, `"42"`, `split("a=b=c", "=", 2)[1]`, `"b=c"`),
	{entry{"replace", "replace(text, from, to)", "The string with all occurrences replaced.", ex(`replace(labels.path, "/", "_")`, `"_users_42"`)}, false, true},
	fn("len", "len(x)", "The number of characters of a string, or of elements of a list or map.", `len(labels.job)`, "3", `len("größe")`, "5", `len(split(labels.path, "/"))`, "3"),

	fn("int", "int(x)", "A whole number: of a string of digits, or of a number without its fraction. A string that is not a whole number fails.", `int(labels.status)`, "500", `int(12.7)`, "12", `int(labels.job)`, `error: int("api"): it is no whole number`),
	fn("float", "float(x)", "A number, of a string or a number. A string that is not a number fails.", `float("1.5")`, "1.5"),
	fn("string", "string(x)", "A string, of a number or of true and false.", `string(value)`, `"12"`, `string(value > 10)`, `"true"`),
	fn("abs", "abs(x)", "The absolute value.", `abs(-3)`, "3"),
	fn("ceil", "ceil(x)", "The number rounded up.", `ceil(1.2)`, "2"),
	fn("floor", "floor(x)", "The number rounded down.", `floor(1.8)`, "1"),
	fn("round", "round(x)", "The nearest whole number; halves are rounded away from zero.", `round(1.5)`, "2", `round(value / 7 * 100) / 100`, "1.71"),
	fn("min", "min(a, b, …), min(list)", "The smallest of some numbers.", `min(value, 10)`, "10"),
	fn("max", "max(a, b, …), max(list)", "The largest of some numbers.", `max(value, 0)`, "12"),

	fn("first", "first(list)", "The first element; nil if there is none.", `first(split(labels.path, "/users/")) == ""`, "true"),
	fn("last", "last(list)", "The last element; nil if there is none.", `last(split(labels.path, "/"))`, `"42"`),
	pred("any", "any(list, predicate)", "Whether the predicate is true for one element or more. In the predicate, # is the element.", `any(args.keep, labels.job startsWith #)`, "true"),
	pred("all", "all(list, predicate)", "Whether it is true for every element.", `all(args.keep, len(#) == 3)`, "true"),
	pred("none", "none(list, predicate)", "Whether it is true for no element.", `none(args.keep, # == "db")`, "true"),
	pred("one", "one(list, predicate)", "Whether it is true for exactly one element.", `one(args.keep, # == labels.job)`, "true"),
	pred("count", "count(list, predicate)", "For how many elements it is true.", `count(split(labels.path, "/"), # != "")`, "2"),
	pred("find", "find(list, predicate)", "The first element for which it is true; nil if there is none.", `find(args.keep, # startsWith "w")`, `"web"`, `find(args.keep, # == "db") ?? "none"`, `"none"`, `find(args.keep, # == "db") == nil`, "true"),
	pred("filter", "filter(list, predicate)", "The elements for which it is true.", `len(filter(args.keep, # startsWith "w"))`, "1"),
	pred("map", "map(list, expression)", "A list of the results for each element.", `labels.status in map([4, 5], string(#) + "00")`, "true"),
}

// refused contains the reasons for functions that users may look for.
var refused = map[string]string{
	"now":      "an expression sees the time of the record, not the clock",
	"date":     "an expression sees times as Unix milliseconds",
	"duration": "an expression sees durations as seconds",
}

// lookup returns a function of the table, or nil.
func lookup(name string) *function {
	for i := range functions {
		if functions[i].name == name {
			return &functions[i]
		}
	}
	return nil
}
