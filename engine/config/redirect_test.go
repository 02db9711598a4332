package config

import (
	"testing"

	"github.com/weir-run/weir/engine/flow"
)

type redirected struct {
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr,optional"`
	One       *flow.Receiver   `alloy:"one,attr,optional"`
	None      *flow.Receiver   `alloy:"none,attr,optional"`
	Routes    []struct {
		To []*flow.Receiver `alloy:"to,attr"`
	} `alloy:"route,block,optional"`
	Named  map[string][]*flow.Receiver `alloy:"named,attr,optional"`
	Labels map[string]string           `alloy:"labels,attr,optional"`
}

// TestRedirect: all receivers are replaced, and values that others may use stay as they are.
func TestRedirect(t *testing.T) {
	old, to := flow.NewReceiver("old", 0, nil, nil), flow.NewReceiver("to", 0, nil, nil)
	shared := []*flow.Receiver{old, old}
	named := map[string][]*flow.Receiver{"a": shared}
	a := redirected{ForwardTo: shared, One: old, Named: named, Labels: map[string]string{"a": "b"}}
	a.Routes = append(a.Routes, struct {
		To []*flow.Receiver `alloy:"to,attr"`
	}{})
	Redirect(&a, to)
	var got []string
	for _, r := range Receivers(&a) {
		if r.Receiver != to {
			t.Errorf("%s is still %s", r.Path, r.Receiver.Node())
		}
		got = append(got, r.Path)
	}
	if len(got) != 4 || a.None != nil || a.Labels["a"] != "b" {
		t.Errorf("got receivers at %q, none = %v, labels = %v", got, a.None, a.Labels)
	}
	if shared[0] != old || named["a"][0] != old {
		t.Error("a shared value was changed")
	}
}
