package ui_test

import (
	"testing"

	"github.com/weir-run/weir/engine/service/ui"
)

// TestAllowed: nothing is allowed before the config is known, and without the block, nothing can
// be written.
func TestAllowed(t *testing.T) {
	var s ui.Service
	f := func(want ui.Arguments) {
		t.Helper()
		if got := s.Allowed(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	f(ui.Arguments{})
	for _, a := range []*ui.Arguments{s.Definition().NewConfig().(*ui.Arguments), {}, {LiveData: true, Edit: true}} {
		if err := s.Update(a); err != nil {
			t.Fatal(err)
		}
		f(*a)
	}
	if got := *s.Definition().NewConfig().(*ui.Arguments); got != (ui.Arguments{LiveData: true}) {
		t.Errorf("the default is %+v", got)
	}
}
