package scripting_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
)

func TestHeaderLines(t *testing.T) {
	h := scripting.ParseHeader(strings.Split(`scripts/a/x.lua
It does something.

Example Args:
  a = 1

  b = 2

Example Input:
  up 1
Example Output:
Example Input:
  up 2
Example Output:

  up 3`, "\n"))
	want := []scripting.Example{
		{Args: "a = 1\n\nb = 2\n", Input: "up 1\n", Line: 4, ArgsLine: 5, InputLine: 10, OutputLine: 12},
		{Input: "up 2\n", Output: "\nup 3\n", Line: 12, InputLine: 13, OutputLine: 15},
	}
	if diff := cmp.Diff(want, h.Examples); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
