package config_test

import (
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

type writtenArgs struct {
	Name    string            `alloy:"name,attr"`
	Wait    time.Duration     `alloy:"wait,attr,optional"`
	Source  *string           `alloy:"source,attr,optional"`
	Names   []string          `alloy:"names,attr,optional"`
	Values  map[string]string `alloy:"values,attr,optional"`
	Headers map[string]string `alloy:"headers,attr,optional"`
	Token   component.Secret  `alloy:"token,attr,optional"`
	Rules   []writtenRule     `alloy:"rule,block,optional"`
	Auth    *writtenRule      `alloy:"auth,block,optional"`
	Kinds   []writtenKind     `alloy:"kind,enum,optional"`
}

type writtenRule struct {
	Action string `alloy:"action,attr,optional"`
}

type writtenKind struct {
	Rule *writtenRule `alloy:"rule,block,optional"`
}

func (a *writtenArgs) SetToDefault() { *a = writtenArgs{Wait: time.Minute} }

// TestWritten: arguments are shown if they are required or differ from the default, and
// secrets are hidden.
func TestWritten(t *testing.T) {
	f := func(change func(a *writtenArgs), want string) {
		t.Helper()
		var a writtenArgs
		a.SetToDefault()
		change(&a)
		if got := config.Written(&a); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	empty := ""
	f(func(*writtenArgs) {}, `name = ""`)
	f(func(a *writtenArgs) { a.Name, a.Wait, a.Source = "x\n", 0, &empty }, `name = "x\n", wait = "0s", source = ""`)
	f(func(a *writtenArgs) {
		a.Names, a.Values = []string{"b", "a"}, map[string]string{"b": "2", "a": ""}
	}, `name = "", names = ["b", "a"], values = { a = "", b = "2" }`)
	f(func(a *writtenArgs) { a.Names = []string{} }, `name = ""`)
	f(func(a *writtenArgs) { a.Headers, a.Token = map[string]string{"X": "password"}, "password" },
		`name = "", headers = { X = "(secret)" }, token = "(secret)"`)
	f(func(a *writtenArgs) {
		a.Rules, a.Auth = []writtenRule{{"drop"}, {}}, &writtenRule{"keep"}
		a.Kinds = []writtenKind{{&writtenRule{"left out"}}}
	}, `name = "", rule { action = "drop" }, rule { }, auth { action = "keep" }`)
}
