// Package stdlib is what scripts may call: modules of pure functions, declared
// once as tables and bound by every language.
//
// A function here sees its arguments and nothing else: no clock, network, file
// or environment. What it takes and what it returns is bounded. A mistake in
// the data is a returned error, `value, err` in Lua; a wrong argument is a
// *scripting.ArgError, raised where the script made the call.
package stdlib

import "github.com/weir-run/weir/scripting"

// Modules returns the modules, by name. They share caches of compiled patterns
// and time zones, which are bounded, and are safe for concurrent use: one set
// serves all scripts of a process.
func Modules() []*scripting.Module {
	return []*scripting.Module{
		base64Module(), csvModule(), hashModule(), jsonModule(), logfmtModule(), mathModule(), netModule(), promModule(), reModule(), semverModule(), textModule(), timeModule(), urlModule(), uuidModule(), yamlModule(),
	}
}
