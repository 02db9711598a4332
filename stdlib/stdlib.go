// Package stdlib contains the functions that scripts can call: modules of pure
// functions, declared once as tables and bound by every language.
//
// A function only uses its arguments: no clock, network, file or environment. The
// sizes of its arguments and results are limited. An error in the data is a
// returned error, `value, err` in Lua; a wrong argument is a *scripting.ArgError,
// which is raised at the position of the call in the script.
package stdlib

import "github.com/weir-run/weir/scripting"

// Modules returns the modules, sorted by name. They share caches of compiled
// patterns and time zones with a limited size, and are safe for concurrent use:
// one set serves all scripts of a process.
func Modules() []*scripting.Module {
	return []*scripting.Module{
		base64Module(), csvModule(), hashModule(), jsonModule(), logfmtModule(), mathModule(), netModule(), promModule(), reModule(), semverModule(), textModule(), timeModule(), urlModule(), uuidModule(), yamlModule(),
	}
}
