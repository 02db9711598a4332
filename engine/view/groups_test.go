package view_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/view"
)

// Values are distinguished even if their concatenations are equal. A dropped
// row is in no group.
func TestGroupBy(t *testing.T) {
	one, two := series("m", "a", "x", "b", "1:y"), series("m", "a", "x1:", "b", "y")
	m := over(metrics(one, two, one, one), view.NewCache(view.Options{}))
	m.Drop(2)
	got := view.GroupBy(&m.Window, func(row int) []string { return []string{m.Label(row, "a"), m.Label(row, "b")} }, func(s string) string { return s })
	want := []view.Group[string]{
		{Values: []string{"x", "1:y"}, Rows: []int{0, 3}},
		{Values: []string{"x1:", "y"}, Rows: []int{1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A row's text is one line, shortened to fit a message.
func TestRowText(t *testing.T) {
	m := over(metrics(series("m", "a", "x"), series("m", "a", strings.Repeat("x", 1000))), view.NewCache(view.Options{}))
	if got, want := m.RowText(0), `m{a="x"} 1 0`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := m.RowText(1); len(got) != 300 || got[297:] != "…" {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
	if got := m.RowText(2) + m.RowText(-1); got != "" {
		t.Errorf("a row that is not there has text %q", got)
	}
}
