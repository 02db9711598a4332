package lua

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// Manual says how the Lua of scripts differs from Lua 5.1, and why. It contains all
// differences that conformance_test.go finds with gopher-lua's own tests and with
// those of Lua 5.1.
func Manual() string {
	var b strings.Builder
	b.WriteString(`Scripts are written in Lua 5.1 with goto, as gopher-lua has it. The
differences:

Globals are read-only, and a component that assigns to one is refused with the
line; _G and rawset cannot change them either. A plain file that 'weir eval' runs
may assign to globals. These are missing:
`)
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		scripting.WriteManual(&b, name, removed[name]+".")
	}
	fmt.Fprintf(&b, `
require takes a constant string, so that weir knows which files a component is
made of. Modules are those of the standard library and the files below lib; they
may not assign to globals. string.dump is an error.

Numbers are written so that they read back as the same number; Lua cuts at 14
digits. The order of pairs is that in which keys were set. string.format knows
the verbs of C. Letters are ASCII's, whatever the locale.

A call is bounded: in time, instructions and memory (script.limits); strings have
%d MiB at most, calls nest %d deep, coroutines %d; unpack and string.byte return
at most %d values; a table's items beyond index %d are not counted by #. A
coroutine cannot yield across pcall, a metamethod, an iterator or a callback of
the host. A file has %d KiB at most, nests %d levels and compiles within %s.
`, maxString>>20, stateOptions.CallStackSize, maxResume, maxResults, maxArrayIndex, scripting.MaxFileSize>>10, maxNesting, scripting.CompileTime)
	return b.String()
}
