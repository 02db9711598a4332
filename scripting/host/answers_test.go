package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// A Recorder gets the answers of external systems while it records, and those to setup.
func TestRecorder(t *testing.T) {
	var r host.Recorder
	srv := &server{}
	s := open(t, &scripting.Definition{Kind: scripting.Transform, Needs: scripting.Needs{HTTP: true, Read: true, Env: []string{"REGION", "A_TOKEN", "UNSET"}}}, host.AccessOptions{
		Recorder: &r,
		Outside: host.Outside{
			HTTP: srv, GrantAll: true,
			ReadFile: func(path string, _ int64) ([]byte, error) {
				return []byte(strings.Repeat("x", len(path)*10_000)), nil
			},
			LookupEnv: func(name string) (string, bool) { return name + "!", name != "UNSET" },
		},
	})
	do := func(name string, args ...scripting.Value) {
		t.Helper()
		if _, err := s.do(t, name, args...); err != nil {
			t.Fatal(err)
		}
	}
	do("http.get", "http://a/before")
	s.call.Setup = true
	do("http.get", "http://a/setup")
	s.call.Setup = false
	var got []component.Answer
	stop, ok := r.Start(func(a component.Answer) { got = append(got, a) })
	if !ok {
		t.Fatal("cannot record")
	}
	if _, ok := r.Start(func(component.Answer) {}); ok {
		t.Error("two recordings run at the same time")
	}
	do("http.post", "http://a/x", "body", table("query", table("q", "a b")))
	do("read", "/a", table("secret", true))
	do("read", "/larger")
	do("secret", "s3cret")
	stop()
	stop() // changes nothing
	do("http.get", "http://a/after")
	if _, ok := r.Start(func(component.Answer) {}); !ok {
		t.Error("cannot record again")
	}
	want := []component.Answer{
		{Kind: "http", Key: "POST http://a/x?q=a+b", Status: 200, Text: "[1]"},
		{Kind: "files", Key: "/a", Text: strings.Repeat("x", 20_000), Secret: true},
		{Kind: "files", Key: "/larger", Large: true},
		{Kind: "secret", Text: "s3cret"},
	}
	for i := range got {
		if got[i].Time.IsZero() {
			t.Errorf("%s has no time", got[i].Key)
		}
		got[i].Time = want[0].Time
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var begin []string
	for _, a := range s.access.Beginning() {
		begin = append(begin, a.Kind+" "+a.Key)
		if a.Secret != (a.Key == "A_TOKEN") {
			t.Errorf("%s: secret is %v", a.Key, a.Secret)
		}
	}
	if want := []string{"env REGION", "env A_TOKEN", "http GET http://a/setup"}; !slices.Equal(begin, want) {
		t.Errorf("got %q, want %q", begin, want)
	}
}
