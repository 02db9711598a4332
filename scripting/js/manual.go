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
for editors and tsc. What differs from a browser and from Node:

What is not there: eval and functions made of text, timers (use every, ctx.sleep),
fetch (ctx.http), process, Buffer, Intl, WeakRef, structuredClone, dynamic import,
top-level await and packages of npm. Modules are weir, weir/json and its like, and
files of the script's.

What differs from the Lua of scripts: lists, batches and rows count from 0. A value
that is not there is undefined, the null of JSON is null. Whole numbers beyond 2^53
come from the host as BigInts, and go back exact; all others are numbers. What fails
throws, and what waits is a promise: await it. Text is UTF-16, in which a byte that
is no UTF-8 reads as U+FFFD. 'weir check' knows what is not there and says what to use.

Date without a time tells that of ctx.now(), which stands still while a hook runs,
and throws where there is none: outside of hooks, and in series and stream, whose
answers are remembered. Math.random throws: the same input gives the same output.

What the language has is frozen: nothing can be added to Array.prototype, to Math
or to globalThis. Objects of your own may have a toString, a constructor or a
message all the same. BigInts cannot be shifted or raised to a power; multiply.

A call is bounded: in time and memory (script.limits), and neither catch nor
finally holds its end up. Calls nest %d deep. A function of the language makes
strings of %d MiB at most, goes over %d items of a list, passes %d arguments and
reads or writes %d values of JSON, %d levels deep; more is a RangeError. Up to %d
of them may be inside each other, and as many Proxies or bound functions behind
each other. A file has %d KiB at most, nests %d brackets and compiles within %s.

A pattern with lookaround or a backreference, and one that goes on from the middle
of a text by lastIndex, may go back and try again too often: after %s for one
match that is a RangeError. All others run on RE2, and end with the call. Patterns
have %d characters at most and take %d MiB of memory, which counts towards the
limit of the script.
`, maxStack, scripting.MaxString>>20, maxItems, maxArgs, maxJSONValues, maxJSONDepth, maxDepth, scripting.MaxFileSize>>10, maxNesting, scripting.CompileTime, matchTime, maxPattern, regex.MaxBytes>>20)
}
