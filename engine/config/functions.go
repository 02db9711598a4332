package config

import (
	"fmt"
	"slices"
	"strings"
)

// topic describes an operator or a function of the config language. Language
// prints all topics, and its test evaluates every example.
type topic struct {
	name     string
	form     string // how it is written
	doc      string
	examples []example
}

// example is an expression and its result in config syntax, or "error: " with
// the message.
type example struct{ source, result string }

func newTopic(name, form, doc string, pairs ...string) topic {
	e := topic{name: name, form: form, doc: doc}
	for i := 0; i < len(pairs); i += 2 {
		e.examples = append(e.examples, example{pairs[i], pairs[i+1]})
	}
	return e
}

// functions are the functions and constants of alloy/syntax's standard library.
var functions = []topic{
	newTopic("string.format", "string.format(format, value, …)", "A string made of a format and values: %s stands for a string, %d for a whole number, %v for any value, %% for a percent sign.",
		`string.format("%s:%d", "10.1.0.1", 9100)`, `"10.1.0.1:9100"`),
	newTopic("string.join", "string.join(list, separator)", "The strings of a list, joined.", `string.join(["a", "b"], ",")`, `"a,b"`),
	newTopic("string.replace", "string.replace(text, from, to)", "The string with all occurrences replaced.", `string.replace("a.b.c", ".", "-")`, `"a-b-c"`),
	newTopic("string.split", "string.split(text, separator)", "The list of the parts of a string.", `string.split("a,b", ",")`, `["a", "b"]`, `string.split("10.1.0.1:9100", ":")[0]`, `"10.1.0.1"`),
	newTopic("string.to_lower", "string.to_lower(text)", "The string in lower case.", `string.to_lower("EU")`, `"eu"`),
	newTopic("string.to_upper", "string.to_upper(text)", "The string in upper case.", `string.to_upper("eu")`, `"EU"`),
	newTopic("string.trim", "string.trim(text, characters)", "The string without some characters at both ends.", `string.trim("/metrics/", "/")`, `"metrics"`),
	newTopic("string.trim_prefix", "string.trim_prefix(text, prefix)", "The string without a prefix, if it has that.", `string.trim_prefix("www.example.com", "www.")`, `"example.com"`),
	newTopic("string.trim_suffix", "string.trim_suffix(text, suffix)", "The string without a suffix, if it has that.", `string.trim_suffix("a.log", ".log")`, `"a"`),
	newTopic("string.trim_space", "string.trim_space(text)", "The string without white space at both ends. Files often end with a line break.", `string.trim_space(" eu\n")`, `"eu"`),

	newTopic("array.concat", "array.concat(list, …)", "One list of the elements of all lists, such as the targets of several discoveries.", `array.concat([1, 2], [3])`, `[1, 2, 3]`),
	newTopic("array.combine_maps", "array.combine_maps(list, other, names), array.combine_maps(list, other, names, keep)", "Joins the maps of two lists that have the same values under all names. A value of the second list wins. Maps without a partner are left out. With keep = true, a map of the first list is added once more for each map of the second list that it does not match.",
		`array.combine_maps([{ a = 1, b = 2 }], [{ a = 1, c = 3 }], ["a"])`, `[{ a = 1, b = 2, c = 3 }]`),
	newTopic("array.group_by", "array.group_by(list, name, drop)", "A list with a map for each value that the maps of a list have under a name: the value, and items, which is the list of those maps. Maps without the name form a group \"\", or are dropped with drop = true.",
		`array.group_by([{ a = "x", b = 1 }, { a = "x", b = 2 }], "a", true)`, `[{ a = "x", items = [{ a = "x", b = 1 }, { a = "x", b = 2 }] }]`),

	newTopic("encoding.from_json", "encoding.from_json(text)", "The value that a JSON text stands for.", `encoding.from_json(local.file.sites.content)`, `[{ name = "north" }, { name = "south" }]`, `encoding.from_json(local.file.sites.content)[0].name`, `"north"`),
	newTopic("encoding.to_json", "encoding.to_json(map)", "The JSON text of a map.", `encoding.to_json({ team = "ops" })`, `"{\"team\":\"ops\"}"`),
	newTopic("encoding.from_yaml", "encoding.from_yaml(text)", "The value that a YAML text stands for.", "encoding.from_yaml(\"team: ops\")", `{ team = "ops" }`),
	newTopic("encoding.from_base64", "encoding.from_base64(text)", "The bytes that are encoded in Base64. They can be the value of an attribute that takes a string, but not of one that takes a secret, and + cannot join them; string.trim_space makes a string of them.",
		`string.trim_space(encoding.from_base64("d2Vpcg=="))`, `"weir"`, `encoding.from_base64("d2Vpcg==") + "x"`, "error: should be number or string or capsule for +, got array"),
	newTopic("encoding.to_base64", "encoding.to_base64(text)", "The text encoded in Base64.", `encoding.to_base64("weir")`, `"d2Vpcg=="`),
	newTopic("encoding.from_URLbase64", "encoding.from_URLbase64(text)", "As from_base64, with - and _ in place of + and /.", `string.trim_space(encoding.from_URLbase64("Pz8_"))`, `"???"`),
	newTopic("encoding.to_URLbase64", "encoding.to_URLbase64(text)", "As to_base64, with - and _ in place of + and /.", `encoding.to_URLbase64("???")`, `"Pz8_"`),
	newTopic("encoding.url_encode", "encoding.url_encode(text)", "The text encoded for the query of a URL.", `encoding.url_encode("a b&c")`, `"a+b%26c"`),
	newTopic("encoding.url_decode", "encoding.url_decode(text)", "The text that is encoded for the query of a URL.", `encoding.url_decode("a+b%26c")`, `"a b&c"`),

	newTopic("json_path", "json_path(text, path)", "The list of the values in a JSON text that a JSONPath expression selects. Use an index to get one element.", `json_path(local.file.sites.content, "$[*].name")`, `["north", "south"]`, `json_path(local.file.sites.content, "$[0].name")[0]`, `"north"`),
	newTopic("coalesce", "coalesce(value, …)", "The first value that is not null or empty: not \"\", 0, false, [] or {}. If all are, the last one.", `coalesce(sys.env("NO_SUCH_VARIABLE"), "eu")`, `"eu"`, `coalesce([], ["a"])`, `["a"]`),

	newTopic("sys.env", "sys.env(name)", "The value of an environment variable of weir; \"\" if it is not set. It is read when the config is loaded.", `sys.env("REGION")`, `"eu"`, `sys.env("NO_SUCH_VARIABLE")`, `""`),
	newTopic("file.path_join", "file.path_join(part, …)", "A path made of parts.", `file.path_join("/var/log", "app", "*.log")`, `"/var/log/app/*.log"`, `file.path_join(module_path, "rules.yml")`, `"/etc/weir/rules.yml"`),
	newTopic("convert.nonsensitive", "convert.nonsensitive(secret)", "A secret as a plain string. It is then visible on the page and in the API.", `convert.nonsensitive(local.file.token.content)`, `"s3cr3t"`),

	newTopic("constants.hostname", "constants.hostname", "The name of the host.", `constants.hostname + ":9100"`, `"host-1:9100"`),
	newTopic("constants.os", "constants.os", "The operating system: \"linux\", \"windows\", \"darwin\" and so on.", `constants.os`, `"linux"`),
	newTopic("constants.arch", "constants.arch", "The architecture: \"amd64\", \"arm64\" and so on.", `constants.arch`, `"amd64"`),
	newTopic("constants.version", "constants.version", "The version of weir.", `constants.version`, `"v1.2.3"`),
}

// oldNames maps the deprecated names of functions to their new names.
var oldNames = map[string]string{
	"env": "sys.env", "nonsensitive": "convert.nonsensitive", "concat": "array.concat",
	"json_decode": "encoding.from_json", "yaml_decode": "encoding.from_yaml", "base64_decode": "encoding.from_base64",
	"format": "string.format", "join": "string.join", "replace": "string.replace", "split": "string.split",
	"to_lower": "string.to_lower", "to_upper": "string.to_upper", "trim": "string.trim",
	"trim_prefix": "string.trim_prefix", "trim_suffix": "string.trim_suffix", "trim_space": "string.trim_space",
}

// operators are in the order of the output of Language.
var operators = []topic{
	newTopic("+", "a + b", "The sum of two numbers, or two strings joined.", `1 + 2`, `3`, `"http://" + constants.hostname`, `"http://host-1"`, `"port " + 1`, "error: should be string, got number"),
	newTopic("-", "a - b, -a", "The difference of two numbers, or the negative of one.", `3 - 5`, `-2`),
	newTopic("*", "a * b", "The product.", `10 * 1024`, `10240`),
	newTopic("/", "a / b", "The quotient. That of two whole numbers is a whole number.", `7 / 2`, `3`, `7 / 2.0`, `3.5`),
	newTopic("%", "a % b", "The remainder.", `7 % 2`, `1`),
	newTopic("^", "a ^ b", "A number raised to a power.", `2 ^ 10`, `1024`),
	newTopic("==", "a == b", "Whether two values are equal. Values of different types are not.", `constants.os == "linux"`, `true`, `1 == "1"`, `false`),
	newTopic("!=", "a != b", "Whether two values differ.", `"a" != "b"`, `true`),
	newTopic("<", "a < b", "Whether a number is less than another, or a string sorts before another.", `1 < 2`, `true`, `"a" < "b"`, `true`),
	newTopic("<=", "a <= b", "Less than or equal.", `2 <= 2`, `true`),
	newTopic(">", "a > b", "Greater than.", `1 > 2`, `false`),
	newTopic(">=", "a >= b", "Greater than or equal.", `2 >= 3`, `false`),
	newTopic("&&", "a && b", "Whether both are true.", `true && false`, `false`),
	newTopic("||", "a || b", "Whether one of them is true.", `true || false`, `true`),
	newTopic("!", "!a", "Whether it is false.", `!(constants.os == "windows")`, `true`),
	newTopic("[ ]", "list[i], map[name]", "An element of a list, which counts from 0, or a value of a map.", `["a", "b"][1]`, `"b"`, `{ eu = 1, us = 2 }[sys.env("REGION")]`, `1`, `["a"][3]`, "error: index 3 is out of range of array with length 1"),
	newTopic(".", "map.name", "A value of a map, or an export of a component.", `{ eu = 1 }.eu`, `1`, `local.file.token.content == ""`, `false`),
}

// precedence lists the operators by precedence, highest first.
var precedence = [][]string{
	{".", "[ ]", "f(x)"}, {"-a", "!a"}, {"^"}, {"*", "/", "%"}, {"+", "-"}, {"==", "!=", "<", "<=", ">", ">="}, {"&&"}, {"||"},
}

// functionNames returns the names in the table of functions.
func functionNames() (names []string) {
	for _, f := range functions {
		names = append(names, f.name)
	}
	return names
}

// unknownFunction returns the diagnostic for a name that is not in the standard
// library.
func unknownFunction(r Reference) *Diagnostic {
	what := "constant"
	if r.call {
		what = "function"
	}
	name := strings.Join(r.Path[:min(2, len(r.Path))], ".")
	d := &Diagnostic{Span: r.Span, Msg: fmt.Sprintf("%s %s does not exist", what, name), Hint: suggestFunction(name)}
	space := r.Path[0] + "."
	var have []string
	for _, f := range functionNames() {
		if strings.HasPrefix(f, space) {
			have = append(have, strings.TrimPrefix(f, space))
		}
	}
	if d.Hint == "" && len(have) > 0 {
		d.Hint = fmt.Sprintf("%s has %s", r.Path[0], strings.Join(have, ", "))
	}
	if d.Hint == "" {
		d.Hint = "'weir help config' lists the functions"
	}
	return d
}

// suggestFunction returns a hint with functions whose name, or its last part,
// is similar to name. It returns "" if there are none.
func suggestFunction(name string) string {
	names := functionNames()
	near := nearest(name, names)
	if len(near) == 0 {
		last := name[strings.LastIndexByte(name, '.')+1:]
		for _, f := range names {
			_, own, _ := strings.Cut(f, ".")
			if own != "" && (own == last || len(nearest(last, []string{own})) > 0) && !slices.Contains(near, f) {
				near = append(near, f)
			}
		}
	}
	return didYouMean(near[:min(len(near), 3)])
}
