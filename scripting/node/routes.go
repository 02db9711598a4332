package node

import (
	"strings"

	"github.com/weir-run/weir/scripting"
)

// wayNames returns the names of a set of ways.
func wayNames(d *scripting.Definition, set uint64) string {
	var names []string
	for way, name := range append([]string{"forward_to"}, d.Outputs...) {
		if set>>way&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
