package js

import (
	"fmt"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/scripting"
)

// Manual explains how the JavaScript of scripts differs from that of a browser
// or of Node, and why. conformance_test.go lists what goja's own tests find
// missing.
func Manual() string {
	return fmt.Sprintf(`Scripts are written in JavaScript as of 2022, or in TypeScript, whose types are
for editors and tsc. They differ from scripts in a browser or in Node:

The following do not exist: eval and functions created from text, timers (use
every, ctx.sleep), fetch (ctx.http), process, Buffer, Intl, WeakRef,
structuredClone, dynamic import, top-level await and npm packages. Modules are
weir, weir/json and similar, and the script's own files.

They also differ from scripts in Lua: lists, batches and rows count from 0. A
missing value is undefined, and the null of JSON is null. Whole numbers beyond 2^53
come from the host as BigInts and stay exact; all other numbers are numbers.
Functions throw their errors, and functions that wait return a promise: await it.
Text is UTF-16; an invalid UTF-8 byte is read as U+FFFD. 'weir check' reports
names that do not exist and suggests replacements.

Date without a time returns ctx.now(), which stands still while a hook runs. It
throws where there is no time: outside of hooks, and in series and stream, whose
results are cached. Math.random throws: the same input gives the same output.

Built-in objects are frozen: nothing can be added to Array.prototype, to Math or to
globalThis. Your own objects may still have a toString, a constructor or a message.
BigInts cannot be shifted or raised to a power; multiply instead.

A call is limited in time and memory (script.limits), and neither catch nor finally
can prevent its end. Calls nest up to %d deep. A built-in function creates strings
of at most %d MiB, iterates over at most %d items of a list, passes at most %d
arguments and reads or writes at most %d values of JSON, %d levels deep; more is
a RangeError. At most %d of them may be nested, and as many Proxies or bound
functions may be chained. A file has at most %d KiB, nests up to %d brackets and
compiles within %s.

A pattern with lookaround or a backreference, or a match that continues in the
middle of a text by lastIndex, may backtrack too often: after %s for one match,
this is a RangeError. All other patterns run on RE2, and end with the call. Patterns
have at most %d characters and take at most %d MiB of memory, which counts towards
the limit of the script.
`, maxStack, scripting.MaxString>>20, maxItems, maxArgs, maxJSONValues, maxJSONDepth, maxDepth, scripting.MaxFileSize>>10, maxNesting, scripting.CompileTime, matchTime, maxPattern, regex.MaxBytes>>20)
}
