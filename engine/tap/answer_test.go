package tap_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/tap"
)

// Secrets are masked in answers and in state: those of the config, those that a script
// declares, and fields whose names say that they are secrets.
func TestAnswers(t *testing.T) {
	p := newPrinter(t, tap.Options{Side: flow.Calls, Format: tap.FormatCalls}, "")
	p.Mask([]string{"hunter 2"})
	wantText(t, p.Begin(nil, map[string]any{
		"seen": map[string]any{"hunter 2": json.Number("12345678901234567")}, "tokens": map[string]any{"a": "x", "n": json.Number("1")},
		"list": []any{"hunter 2", map[string]any{"password": "x", "user": "ann"}, true, nil},
	}), `{"kind":"begin","state":{"list":["(secret)",{"password":"(secret)","user":"ann"},true,null],"seen":{"(secret)":12345678901234567},"tokens":{"a":"(secret)","n":1}}}`+"\n")
	f := func(a component.Answer, want string) {
		t.Helper()
		wantText(t, p.Answers(nil, []component.Answer{a}), `{"kind":"answer","time":"0001-01-01T00:00:00Z",`+want+"}\n")
	}
	f(component.Answer{Kind: "http", Key: "GET http://a/?key=hunter+2&b=hunter%202&t=a%2Bb"}, `"what":"http","key":"GET http://a/?key=(secret)&b=(secret)&t=a b"`)
	f(component.Answer{Kind: "http", Key: "GET http://a/?access_token=x&n=1"}, `"what":"http","key":"GET http://a/?access_token=(secret)&n=1"`)
	f(component.Answer{Kind: "http", Key: "k", Status: 200, Text: `{"access_token": "a\"b", "n": "1", "s": "hunter 2"}`, Header: map[string]string{"X-Auth-Token": "x", "Etag": "hunter 2"}},
		`"what":"http","key":"k","status":200,"headers":{"Etag":"(secret)","X-Auth-Token":"(secret)"},"body":"{\"access_token\": \"(secret)\", \"n\": \"1\", \"s\": \"(secret)\"}"`)
	f(component.Answer{Kind: "exec", Key: "a hunter 2", Status: 1, Stderr: "hunter 2", Error: "hunter 2"}, `"what":"exec","key":"a (secret)","status":1,"stderr":"(secret)","error":"(secret)"`)
	f(component.Answer{Kind: "files", Key: "/a", Text: "s3cret\n", Secret: true}, `"what":"files","key":"/a","body":"(secret)","secret":true`)
	// Later answers do not contain it either, and those before ctx.secret in the same call.
	f(component.Answer{Kind: "files", Key: "/a", Text: "x s3cret", Absent: true, Large: true, Setup: true}, `"what":"files","key":"/a","setup":true,"body":"x (secret)","absent":true,"large":true`)
	wantText(t, p.Answers(nil, []component.Answer{{Kind: "env", Key: "A", Text: "my pass"}, {Kind: component.AnswerSecret, Text: "my pass"}}),
		`{"kind":"answer","time":"0001-01-01T00:00:00Z","what":"env","key":"A","body":"(secret)"}`+"\n")
	p.Mask(nil)
	f(component.Answer{Kind: "env", Key: "A", Text: "my pass, hunter 2"}, `"what":"env","key":"A","body":"(secret), hunter 2"`)
}
