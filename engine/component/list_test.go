package component_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
)

func TestList(t *testing.T) {
	l := component.NewList(
		component.Registration{Name: "prometheus.scrape", Version: "s"},
		component.Registration{Name: "local.file", Version: "f"},
	)
	if diff := cmp.Diff([]string{"local.file", "prometheus.scrape"}, l.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	l.Names()[0] = "changed"
	if got := l.Names()[0]; got != "local.file" {
		t.Errorf("the caller's copy of the names is the catalog's own, which now begins with %q", got)
	}
	if r, ok := l.Lookup("local.file"); !ok || r.Version != "f" {
		t.Errorf("got %+v, %v, want the registration of local.file", r, ok)
	}
	if _, ok := l.Lookup("local.files"); ok {
		t.Error("local.files is known, want unknown")
	}
	if got := l.Roots(); len(got) != 0 {
		t.Errorf("got roots %q, want none", got)
	}
}

func TestListTwice(t *testing.T) {
	defer func() {
		msg, _ := recover().(string)
		if !strings.HasPrefix(msg, "BUG: ") || !strings.Contains(msg, "local.file") {
			t.Errorf("got panic %q, want BUG: and the name", msg)
		}
	}()
	component.NewList(component.Registration{Name: "local.file"}, component.Registration{Name: "local.file"})
}
