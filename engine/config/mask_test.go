package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

type maskAuth struct {
	User     string           `alloy:"user,attr,optional"`
	Password component.Secret `alloy:"password,attr,optional"`
}

type maskStage struct {
	JSON *maskAuth `alloy:"json,block,optional"`
}

type maskArguments struct {
	URL      string                      `alloy:"url,attr,optional"`
	Key      component.Secret            `alloy:"key,attr,optional"`
	Keys     []component.Secret          `alloy:"keys,attr,optional"`
	Env      map[string]component.Secret `alloy:"env,attr,optional"`
	Headers  map[string]string           `alloy:"headers,attr,optional"`
	Labels   map[string]string           `alloy:"labels,attr,optional"`
	Any      any                         `alloy:"any,attr,optional"`
	Auth     *maskAuth                   `alloy:"auth,block,optional"`
	Auths    []*maskAuth                 `alloy:"endpoint.auth,block,optional"`
	Stages   []maskStage                 `alloy:"stage,enum,optional"`
	TokenURL string                      `alloy:"token_url,attr,optional"`
}

func maskArgs(block string) any {
	if block == "test.sink" {
		return new(maskArguments)
	}
	return nil
}

// TestMask: each case is a config and what people see.
func TestMask(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		m := config.Masker{Args: maskArgs, Secrets: []string{"in-use-elsewhere"}}
		got, _ := m.Mask(map[string]string{"c.alloy": in})
		if diff := cmp.Diff(want, got["c.alloy"]); diff != "" {
			t.Errorf("the config (-want +got):\n%s", diff)
		}
		if strings.Contains(got["c.alloy"], "hunter2") {
			t.Errorf("the secret is shown: %s", got["c.alloy"])
		}
		if a, b := strings.Count(in, "\n"), strings.Count(got["c.alloy"], "\n"); a != b {
			t.Errorf("got %d lines, want %d", b, a)
		}
		again, _ := m.Mask(got)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("masking again changes the text:\n%s", diff)
		}
	}
	sink := func(in, want string) {
		t.Helper()
		f("test.sink \"a\" {\n"+in+"\n}\n", "test.sink \"a\" {\n"+want+"\n}\n")
	}
	// Secrets by their type.
	sink(`key = "hunter2"`, `key = "(secret)"`)
	sink(`key = "hunter" + "2"`, `key = "(secret)" + "(secret)"`)
	sink(`key = string.format("%s", "hunter2")`, `key = string.format("(secret)", "(secret)")`)
	sink("key = `hunter2\nhunter2\n`", "key = `(secret)\n\n`")
	sink(`key = 123456`, `key = "(secret)"`)
	sink(`key = hunter2`, `key = "(secret)"`)
	sink(`key = ""`, `key = ""`)
	sink(`key = sys.env("MY_KEY")`, `key = sys.env("MY_KEY")`)
	sink(`key = test.vault.a.data["my_key"]`, `key = test.vault.a.data["my_key"]`)
	sink(`keys = ["hunter2", "hunter22"]`, `keys = ["(secret)", "(secret)"]`)
	sink(`env = {A = "hunter2"}`, `env = {A = "(secret)"}`)
	sink("auth {\nuser = \"me\"\npassword = \"hunter2\"\n}", "auth {\nuser = \"me\"\npassword = \"(secret)\"\n}")
	sink("endpoint.auth {\npassword = \"hunter2\"\n}", "endpoint.auth {\npassword = \"(secret)\"\n}")
	sink("stage.json {\npassword = \"hunter2\"\n}", "stage.json {\npassword = \"(secret)\"\n}")
	// Mistakes.
	sink("auth {\npasswort = \"hunter2\"\npasword = \"hunter2\"\n}", "auth {\npasswort = \"(secret)\"\npasword = \"(secret)\"\n}")
	sink("aut {\npasword = \"hunter2\"\n}", "aut {\npasword = \"(secret)\"\n}")
	// Headers, and URLs.
	sink(`headers = {"X-Key" = "hunter2"}`, `headers = {"X-Key" = "(secret)"}`)
	sink(`url = "http://me:hunter2@example.com/x?key=hunter2"`, `url = "http://me:(hidden)@example.com/x?key=(hidden)"`)
	sink(`token_url = "http://example.com/token"`, `token_url = "http://example.com/token"`)
	// Keys of objects.
	sink(`any = {password = "hunter2", a = [{"api_key" = "hunter2"}], user = "me"}`, `any = {password = "(secret)", a = [{"api_key" = "(secret)"}], user = "me"}`)
	// A secret is hidden wherever it is written, and so are those in use.
	sink("key = \"hunter2\"\nlabels = {a = \"x-hunter2\"}", "key = \"(secret)\"\nlabels = {a = \"(secret)\"}")
	sink(`labels = {a = "in-use-elsewhere", b = "other"}`, `labels = {a = "(secret)", b = "other"}`)
	sink(`labels = {a = "in-use-" + "elsewhere", b = "other" + "x"}`, `labels = {a = "(secret)" + "(secret)", b = "other" + "x"}`)
	// Comments.
	sink("// password = \"hunter2\" // old\n// see password\nkey = \"hunter2\" /* hunter2 */", "// password = (secret)\n// see password\nkey = \"(secret)\" /* (secret) */")
	sink(`/* {"Authorization" = "hunter2"} */`, `/* {"Authorization" = (secret) */`)
	// Modules, and blocks that are not known.
	f("declare \"m\" {\n  argument \"password\" {\noptional = true\ndefault = \"hunter2\"\n}\n  test.sink \"a\" {\nkey = \"hunter2\"\n}\n}\n",
		"declare \"m\" {\n  argument \"password\" {\noptional = true\ndefault = \"(secret)\"\n}\n  test.sink \"a\" {\nkey = \"(secret)\"\n}\n}\n")
	f("m \"a\" {\npassword = \"hunter2\"\nuser = \"me\"\n}\n", "m \"a\" {\npassword = \"(secret)\"\nuser = \"me\"\n}\n")
	f("foreach \"a\" {\ncollection = [{token = \"hunter2\"}]\ntemplate {\n  test.sink \"a\" {\nkey = \"hunter2\"\n}\n}\n}\n",
		"foreach \"a\" {\ncollection = [{token = \"(secret)\"}]\ntemplate {\n  test.sink \"a\" {\nkey = \"(secret)\"\n}\n}\n}\n")
	f("import.string \"a\" {\ncontent = `declare \"m\" {\n  test.sink \"a\" { key = \"hunter2\" }\n}`\n}\n",
		"import.string \"a\" {\ncontent = `declare \"m\" {\n  test.sink \"a\" { key = \"(secret)\" }\n}`\n}\n")
	// Statements with syntax errors have no strings; other statements do.
	sink(`key = hunter2"`, `key = "(secret)"`)
	f("test.sink \"a\" {\nurl = \"hunter2\"\npassword = hunter2\"\n\n\ntest.sink \"b\" {\nurl = \"x\"\n}\n",
		"test.sink \"a\" {\nurl = \"(secret)\"\npassword = (secret)\n\n\ntest.sink \"b\" {\nurl = \"x\"\n}\n")
	f("test.sink \"a\" {\nkey = `hunter2\nhunter2\n}\n", "test.sink \"a\" {\nkey = `(secret)\n\n\n`")
	f("test.sink \"a\" {\nkey = \"hunter2\n}\n", "test.sink \"a\" {\nkey = \"(secret)\"\n}\n")
	f("password = \"hunter2\"\n", "password = \"(secret)\"\n")
	f("", "")
	f("\xff\xfehunter2", "(this is not UTF-8 text)")
}

// TestMaskMessages: messages about a config do not contain its secrets.
func TestMaskMessages(t *testing.T) {
	files := map[string]string{"c.alloy": "test.sink \"a\" {\n  keys = \"hunter2\"\n}\n"}
	_, hide := config.Masker{Args: maskArgs}.Mask(files)
	if got, want := hide(`keys is "hunter2" of http://a:b@c`), `keys is "(secret)" of http://a:(hidden)@c`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
