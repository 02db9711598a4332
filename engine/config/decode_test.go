package config_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
)

type arguments struct {
	ForwardTo []*flow.Receiver    `alloy:"forward_to,attr"`
	Targets   []map[string]string `alloy:"targets,attr,optional"`
	Interval  time.Duration       `alloy:"scrape_interval,attr,optional"`
	Timeout   time.Duration       `alloy:"scrape_timeout,attr,optional"`
	Limit     int                 `alloy:"sample_limit,attr,optional"`
	Honor     bool                `alloy:"honor_labels,attr,optional"`
	Any       any                 `alloy:"any,attr,optional"`
	Endpoints []*endpoint         `alloy:"endpoint,block,optional"`
	Auth      *auth               `alloy:"basic_auth,block,optional"`
	Labels    map[string]string   `alloy:"labels,block,optional"`
	Stages    []stage             `alloy:"stage,enum,optional"`
	HTTP      client              `alloy:",squash"`
}

type client struct {
	Token   component.Secret            `alloy:"bearer_token,attr,optional"`
	Headers map[string]component.Secret `alloy:"http_headers,attr,optional"`
}

type endpoint struct {
	Name string `alloy:",label"`
	URL  string `alloy:"url,attr"`
	Size int    `alloy:"size,attr,optional"`
}

type auth struct {
	User     string           `alloy:"username,attr"`
	Password component.Secret `alloy:"password,attr,optional"`
}

type stage struct {
	JSON  *jsonStage  `alloy:"json,block,optional"`
	Regex *regexStage `alloy:"regex,block,optional"`
}

type jsonStage struct {
	Fields []string `alloy:"fields,attr"`
}

type regexStage struct {
	Expr string `alloy:"expression,attr"`
}

func (a *arguments) SetToDefault() {
	*a = arguments{Interval: time.Minute, Timeout: 10 * time.Second}
}

func (a *arguments) Validate() error {
	var errs []error
	if a.Timeout > a.Interval {
		errs = append(errs, errors.New("scrape_timeout is longer than scrape_interval"))
	}
	if a.Limit < 0 {
		errs = append(errs, errors.New("sample_limit is negative"))
	}
	return errors.Join(errs...)
}

func (a *arguments) Warnings() []string {
	if a.Limit == 7 {
		return []string{"sample_limit has no effect"}
	}
	return nil
}

func (e *endpoint) SetToDefault() { e.Size = 3 }

func (e *endpoint) Validate() error {
	if e.URL == "" {
		return errors.New("url is empty")
	}
	return nil
}

type exports struct {
	Receiver *flow.Receiver           `alloy:"receiver,attr"`
	Targets  []map[string]string      `alloy:"targets,attr"`
	Content  component.OptionalSecret `alloy:"content,attr"`
	N        int                      `alloy:"n,attr"`
}

// universe returns a scope with nodes that are built, provisional and unknown.
func universe(c *config.Config) (*config.Scope, *flow.Receiver) {
	s := c.NewScope("v1.2.3")
	r := flow.NewReceiver("prometheus.remote_write.default", batch.SignalMetrics, nil, nil)
	s.Set("prometheus.remote_write.default", config.WithReceiver(exports{}, r))
	s.Set("local.file.token", exports{
		Content: component.OptionalSecret{IsSecret: true, Value: "hush"},
		Targets: []map[string]string{{"__address__": "a:1"}, {"__address__": "b:2"}},
		N:       5,
	})
	s.SetProvisional("discovery.later.x", config.WithReceiver(exports{}, r))
	s.SetUnknown("demo.broken.x")
	s.Set("string.upper.x", exports{N: 9})
	s.Set("nothing.out.x", nil)
	return s, r
}

func parseOne(t *testing.T, body string) (*config.Config, *config.Block) {
	t.Helper()
	c, ds := config.Parse(map[string]string{"c.alloy": "prometheus.scrape \"x\" {\n" + body + "\n}\n"})
	if len(ds) > 0 {
		t.Fatal(diagnose(ds))
	}
	return c, c.Blocks[0]
}

func TestDecodeMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		c, b := parseOne(t, body)
		s, _ := universe(c)
		_, ds := b.Resolve(s)
		ds = append(ds, b.Decode(s, &arguments{})...).Sort()
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(diagnose(ds))); diff != "" {
			t.Errorf("%s\ndiagnostics (-want +got):\n%s", body, diff)
		}
	}
	const ok = "forward_to = [prometheus.remote_write.default.receiver]\n"
	f(ok, "")

	// Names.
	f("", `c.alloy:1:1: missing required attribute forward_to`)
	f(ok+"scrape_intervall = \"1s\"", `c.alloy:3:1: unknown attribute scrape_intervall (did you mean scrape_interval?)`)
	f(ok+"basic_auht {\n}", `c.alloy:3:1: unknown block basic_auht (did you mean basic_auth?)`)
	f(ok+"zzz = 1", `c.alloy:3:1: unknown attribute zzz ('weir components prometheus.scrape' lists its attributes and blocks)`)
	f(ok+"basic_auth = 1", `c.alloy:3:1: basic_auth is a block, not an attribute (write: basic_auth { … })`)
	f(ok+"targets {\n}", `c.alloy:3:1: targets is an attribute, not a block (write: targets = …)`)
	f(ok+"honor_labels = true\nhonor_labels = false", `c.alloy:4:1: attribute honor_labels is set twice (first set at c.alloy:3:1)`)
	f(ok+"basic_auth {\nusername = \"a\"\n}\nbasic_auth {\n}", `c.alloy:6:1: block basic_auth can be there only once
c.alloy:6:1: missing required attribute basic_auth.username`)
	f(ok+"basic_auth \"x\" {\nusername = \"a\"\n}", `c.alloy:3:1: block basic_auth takes no label`)
	f(ok+"endpoint {\n url = \"a\"\n}", `c.alloy:3:1: block endpoint needs a label`)
	f(ok+"basic_auth {\n}", `c.alloy:3:1: missing required attribute basic_auth.username`)
	f(ok+"labels {\n  x {\n}\n}", `c.alloy:4:3: block labels takes attributes, not blocks`)
	f(ok+"stage.jsn {\n}", `c.alloy:3:1: unknown block stage.jsn (did you mean stage.json?)`)

	// Values.
	f(ok+"sample_limit = \"many\"", `c.alloy:3:16: sample_limit: should be number, got string`)
	f(ok+"scrape_interval = \"1 sec\"", `c.alloy:3:19: scrape_interval: unknown unit " sec" in duration "1 sec"`)
	f(ok+"scrape_interval = 5", `c.alloy:3:19: scrape_interval: missing unit in duration "5"`)
	f(ok+"honor_labels = 1 + \"a\"", `c.alloy:3:20: honor_labels: should be number, got string`)
	f(ok+"sample_limit = local.file.token.content", `c.alloy:3:16: sample_limit: should be number, got secret or string`)
	f(ok+"scrape_interval = local.file.token.content", `c.alloy:3:19: scrape_interval: secrets may not be converted into strings`)
	f("forward_to = [local.file.token.content, prometheus.remote_write.default.receiver, \"x\", 3]", `
c.alloy:2:15: forward_to[0]: should be receiver, got secret or string
c.alloy:2:83: forward_to[2]: should be receiver, got string
c.alloy:2:88: forward_to[3]: should be receiver, got number`)
	f(ok+"targets = [{a = \"b\", c = 1}, {d = [1]}, 5]", `
c.alloy:3:35: targets[1].d: should be string, got array
c.alloy:3:41: targets[2]: should be map(string), got number`)
	f(ok+"sample_limit = 1 / 0", `c.alloy:3:20: sample_limit: divide by zero error`)
	f(ok+"any = string.jion([\"a\"], \",\")", `c.alloy:3:7: function string.jion does not exist (did you mean string.join?)`)
	f(ok+"any = [1][3]", `c.alloy:3:11: any: index 3 is out of range of array with length 1`)

	// References.
	f("forward_to = [prometheus.remote_write.defualt.receiver]",
		`c.alloy:2:15: component prometheus.remote_write.defualt does not exist (did you mean prometheus.remote_write.default?)`)
	f("forward_to = [prometheus.remote_write.mimir.receiver]",
		`c.alloy:2:15: component prometheus.remote_write.mimir does not exist (there is prometheus.remote_write.default)`)
	f("forward_to = [loki.write.x.receiver]", `c.alloy:2:15: component loki.write.x does not exist (add a block for it to the config)`)
	f("forward_to = [prometheus.remote_write.default.reciever]",
		`c.alloy:2:47: prometheus.remote_write.default has no export reciever (did you mean receiver?)`)
	f("forward_to = [nothing.out.x.receiver]", `c.alloy:2:29: nothing.out.x has no export receiver (it exports nothing)`)
	f("forward_to = [prometheus.remote_write.default]", `c.alloy:2:15: forward_to[0]: should be receiver, got object`)
	f(ok+"honor_labels = ture", `c.alloy:3:16: ture does not exist (a text is written in quotes: "ture")`)
	// A bad reference does not hide other errors, and is reported once.
	f("forward_to = [loki.write.x.receiver, 5]", `
c.alloy:2:15: component loki.write.x does not exist (add a block for it to the config)
c.alloy:2:38: forward_to[1]: should be receiver, got number`)
	// A reference to a broken node is not an error.
	f("forward_to = [demo.broken.x.receiver]\nsample_limit = -1", `c.alloy:3:1: sample_limit is negative`)

	// Validate: errors are at the attribute that they mention. Joined errors are
	// separate, including those of nested blocks.
	f(ok+"scrape_timeout = \"2m\"\nsample_limit = -1", `
c.alloy:3:1: scrape_timeout is longer than scrape_interval
c.alloy:4:1: sample_limit is negative`)
	f(ok+"endpoint \"a\" {\n url = \"\"\n}\nendpoint \"b\" {\n url = \"\"\n}", `
c.alloy:4:2: url is empty
c.alloy:7:2: url is empty`)
	f(ok+"sample_limit = 7", `c.alloy:3:1: warning: sample_limit has no effect`)

	// An error that a misspelt attribute may have caused is not reported.
	f(ok+"scrape_intervall = \"5m\"\nscrape_timeout = \"2m\"\nsample_limit = -1", `
c.alloy:3:1: unknown attribute scrape_intervall (did you mean scrape_interval?)
c.alloy:5:1: sample_limit is negative`)

	// Provisional values: type errors are reported, errors of the value are not.
	// Errors of Validate are reported if they mention other attributes only.
	f("forward_to = [discovery.later.x.receiver]\nsample_limit = -1", `c.alloy:3:1: sample_limit is negative`)
	f(ok+"targets = discovery.later.x.targets\nsample_limit = -1", `c.alloy:4:1: sample_limit is negative`)
	f(ok+"targets = discovery.later.x.targets\nscrape_timeout = \"2m\"", `c.alloy:4:1: scrape_timeout is longer than scrape_interval`)
	f(ok+"scrape_interval = discovery.later.x.content\nscrape_timeout = \"2m\"", "")
	f(ok+"targets = discovery.later.x.targets\nsample_limit = 7", `c.alloy:4:1: warning: sample_limit has no effect`)
	f(ok+"endpoint \"a\" {\n url = discovery.later.x.content\n}\nsample_limit = -1", `c.alloy:6:1: sample_limit is negative`)
	f(ok+"any = discovery.later.x.targets[0]", "")
	f(ok+"scrape_interval = discovery.later.x.content", "")
	f(ok+"sample_limit = discovery.later.x.targets", `c.alloy:3:16: sample_limit: should be number, got array`)
	f(ok+"endpoint \"a\" {\n url = discovery.later.x.content\n}\nendpoint \"b\" {\n url = \"\"\n}", `c.alloy:7:2: url is empty`)

	// Ten errors in one block.
	f(`targets = [5, {a = [1]}]
	scrape_interval = 1
	scrape_timeout = "x"
	sample_limit = "a"
	honor_lables = true
	honor_labels = "no"
	endpoint "a" {
	  size = "b"
	}
	basic_auth {
	  password = 3
	  username = [1]
	}
	unknown {}`, `
c.alloy:1:1: missing required attribute forward_to
c.alloy:2:12: targets[0]: should be map(string), got number
c.alloy:2:20: targets[1].a: should be string, got array
c.alloy:3:20: scrape_interval: missing unit in duration "1"
c.alloy:4:19: scrape_timeout: invalid duration "x"
c.alloy:5:17: sample_limit: should be number, got string
c.alloy:6:2: unknown attribute honor_lables (did you mean honor_labels?)
c.alloy:7:17: honor_labels: should be bool, got string
c.alloy:8:2: missing required attribute endpoint.url
c.alloy:9:11: endpoint.size: should be number, got string
c.alloy:12:15: basic_auth.password: should be secret, got number
c.alloy:13:15: basic_auth.username: should be string, got array
c.alloy:15:2: unknown block unknown ('weir components prometheus.scrape' lists its attributes and blocks)`)
}

func TestDecodeValues(t *testing.T) {
	c, b := parseOne(t, `
	forward_to = [prometheus.remote_write.default.receiver, discovery.later.x.receiver]
	targets    = array.concat(local.file.token.targets, [{"__address__" = local.file.token.targets[1]["__address__"]}])
	scrape_interval = "30s"
	sample_limit    = local.file.token.n + string.upper.x.n * 2
	any = [constants.version, string.join(["a", "b"], "-"), constants.os]
	bearer_token = local.file.token.content
	http_headers = { a = "b", c = convert.nonsensitive(local.file.token.content) }
	endpoint "a" { url = "u" }
	stage.json { fields = ["x"] }
	endpoint "b" {
		url  = "v"
		size = 4
	}
	stage.regex { expression = "r" }
	labels {
		x = "y"
	}
	basic_auth {
		username = sys.env("NOT_SET_ANYWHERE")
		password = local.file.token.content
	}`)
	s, r := universe(c)
	deps, ds := b.Resolve(s)
	var got arguments
	ds = append(ds, b.Decode(s, &got)...)
	if len(ds) > 0 {
		t.Fatal(diagnose(ds))
	}
	// The order of first mention.
	if diff := cmp.Diff([]string{"prometheus.remote_write.default", "discovery.later.x", "local.file.token", "string.upper.x"}, deps); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	if len(got.ForwardTo) != 2 || got.ForwardTo[0] != r || got.ForwardTo[1] != r {
		t.Error("a receiver came out as a copy")
	}
	refs := config.Receivers(&got)
	if len(refs) != 2 || refs[1].Receiver != r || refs[1].Path != "forward_to" {
		t.Errorf("got receivers %v", refs)
	}
	got.ForwardTo = nil
	os := got.Any.([]any)[2]
	want := arguments{
		Targets:   []map[string]string{{"__address__": "a:1"}, {"__address__": "b:2"}, {"__address__": "b:2"}},
		Interval:  30 * time.Second,
		Timeout:   10 * time.Second,
		Limit:     23,
		Any:       []any{"v1.2.3", "a-b", os},
		Endpoints: []*endpoint{{"a", "u", 3}, {"b", "v", 4}},
		Auth:      &auth{"", "hush"},
		Labels:    map[string]string{"x": "y"},
		Stages:    []stage{{JSON: &jsonStage{[]string{"x"}}}, {Regex: &regexStage{"r"}}},
		HTTP:      client{"hush", map[string]component.Secret{"a": "b", "c": "hush"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if b.Provisional(s) {
		t.Error("known fields of a provisional node count as not known")
	}
	for path, want := range map[string]string{
		"forward_to": "3:15", "endpoint.url": "10:23", "stage.json": "11:2", "stage.regex.expression": "16:29",
		"basic_auth.nope": "20:2", "nope": "1:1", "": "1:1",
	} {
		if got := b.SpanOf(path).String(); got != "c.alloy:"+want {
			t.Errorf("got %s for %q, want %s", got, path, want)
		}
	}
}

func TestDecodeScriptArguments(t *testing.T) {
	// The arguments of a script are a struct type created at run time. It has no
	// methods, and its defaults are in the value.
	typ := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `alloy:"region,attr,optional"`},
		{Name: "B", Type: reflect.TypeFor[[]*flow.Receiver](), Tag: `alloy:"forward_to,attr"`},
		{Name: "C", Type: reflect.StructOf([]reflect.StructField{
			{Name: "T", Type: reflect.TypeFor[component.Secret](), Tag: `alloy:"key,attr"`},
		}), Tag: `alloy:"script,block,optional"`},
	})
	c, b := parseOne(t, "forward_to = [prometheus.remote_write.default.receiver]\nscript {\n key = \"k\"\n}")
	s, _ := universe(c)
	v := reflect.New(typ)
	v.Elem().Field(0).SetString("eu")
	if ds := b.Decode(s, v.Interface()); len(ds) > 0 {
		t.Fatal(diagnose(ds))
	}
	want := map[string]any{"region": "eu", "forward_to": []any{"prometheus.remote_write.default.receiver"}, "script": map[string]any{"key": "(secret)"}}
	if diff := cmp.Diff(any(want), config.Redact(v.Interface())); diff != "" {
		t.Errorf("redacted (-want +got):\n%s", diff)
	}
}

// TestDecodeExactNumbers contains numbers that the library wraps or truncates.
func TestDecodeExactNumbers(t *testing.T) {
	type numbers struct {
		Int   int      `alloy:"int,attr,optional"`
		Uint  *uint    `alloy:"uint,attr,optional"`
		Small uint8    `alloy:"small,attr,optional"`
		Float float64  `alloy:"float,attr,optional"`
		Size  sizeText `alloy:"size,attr,optional"`
	}
	f := func(body, want string) {
		t.Helper()
		c, b := parseOne(t, body)
		s, _ := universe(c)
		if got := diagnose(b.Decode(s, new(numbers))); got != want {
			t.Errorf("%s\ngot %q, want %q", body, got, want)
		}
	}
	for _, ok := range []string{"int = -5", "int = 5.0", "int = 2 ^ 40", "int = 9223372036854775807", `int = "7"`, "uint = 0",
		"uint = 18446744073709551615", "small = 255", "float = -1.5", "size = -1", "int = -(1)"} {
		f(ok, "")
	}
	f("int = 1.5", "c.alloy:2:7: int: should be a whole number, got 1.5\n")
	f("int = 1 / 3.0", "c.alloy:2:7: int: should be a whole number, got 0.3333333333333333\n")
	f("int = 1e30", "c.alloy:2:7: int: 1e+30 is out of range\n")
	f("int = 9223372036854775808", "c.alloy:2:7: int: 9223372036854775808 is out of range\n")
	f("uint = -1", "c.alloy:2:8: uint: must not be negative, got -1\n")
	f("uint = -1.0", "c.alloy:2:8: uint: must not be negative, got -1\n")
	f("small = 256", "c.alloy:2:9: small: 256 is out of range\n")
	f("small = 1 - 2", "c.alloy:2:9: small: must not be negative, got -1\n")
}

var inexact = regexp.MustCompile("whole number|out of range")

// sizeText is an integer with a text form that decodes itself.
type sizeText int

func (s *sizeText) UnmarshalText(text []byte) error {
	_, err := fmt.Sscan(string(text), (*int)(s))
	return err
}

// TestDecodeReportsAllAround: an unknown attribute and an invalid nested block
// do not hide errors around them.
func TestDecodeReportsAllAround(t *testing.T) {
	c, b := parseOne(t, `forward_to      = []
	nope            = 1
	scrape_interval = "1s"
	endpoint "a" {
		url = ""
	}
	nope2 { }`)
	s, _ := universe(c)
	want := []string{"unknown attribute nope", "scrape_timeout is longer", "url", "unknown block nope2"}
	ds := b.Decode(s, new(arguments))
	if len(ds) != len(want) {
		t.Fatalf("got %d mistakes, want %d:\n%s", len(ds), len(want), diagnose(ds))
	}
	for i, d := range ds {
		if !strings.Contains(d.Msg, want[i]) {
			t.Errorf("got %q, want %q", d.Msg, want[i])
		}
	}
}

// TestDecodeLikeAlloy compares with the library's own decoder, except for
// numbers that an integer cannot represent; see TestDecodeExactNumbers.
func TestDecodeLikeAlloy(t *testing.T) {
	f := func(body string) {
		t.Helper()
		c, b := parseOne(t, body)
		s, _ := universe(c)
		var got, want arguments
		_, ds := b.Resolve(s)
		ds = append(ds, b.Decode(s, &got)...)

		file, err := parser.ParseFile("c.alloy", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		err = vm.New(file).Evaluate(vm.NewScope(map[string]any{}), &want)
		if inexact.MatchString(diagnose(ds)) {
			return
		}
		if (err != nil) != ds.HasErrors() {
			t.Errorf("%s\ngot %q, alloy says %v", body, diagnose(ds), err)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\narguments (-alloy +got):\n%s", body, diff)
		}
	}
	f(`forward_to = []`)
	f(`forward_to = null`)
	f(`forward_to = [null]`)
	f(``)
	values := []string{`1`, `-1`, `1.5`, `"1"`, `"1s"`, `true`, `null`, `[]`, `["a"]`, `[1]`, `{}`, `{a = "b"}`, `{a = null}`, `[{}]`,
		`[{a = "b"}, null]`, `string.to_upper("a")`, `1 + 1`, `-(1)`, `!true`, `nope`, `1 == 1`, `10 % 3`, `2 ^ 3`, `"a" + "b"`, `18446744073709551615`, `9223372036854775808`}
	for _, name := range []string{"targets", "scrape_interval", "sample_limit", "honor_labels", "any", "bearer_token", "http_headers", "nope"} {
		for _, v := range values {
			f(fmt.Sprintf("forward_to = []\n%s = %s", name, v))
			f(fmt.Sprintf("forward_to = []\nlabels {\n %s = %s\n}", name, v))
			f(fmt.Sprintf("forward_to = []\nendpoint \"a\" {\n url = \"u\"\n}\nendpoint \"b\" {\n url = %s\n size = %s\n}", v, v))
		}
	}
	for _, v := range values {
		f("forward_to = " + v)
	}
}
