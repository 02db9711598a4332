package js

import (
	"regexp"
	"strings"
)

const noTimers = "there are no timers"

// instead contains replacements for APIs of browsers or Node that scripts lack.
var instead = map[string]string{
	"setTimeout":      noTimers + ": use every in the definition, or await ctx.sleep(seconds)",
	"setInterval":     noTimers + ": use every in the definition",
	"setImmediate":    noTimers + ": use every in the definition",
	"clearTimeout":    noTimers + ": use every in the definition",
	"clearInterval":   noTimers + ": use every in the definition",
	"fetch":           "use await ctx.http.get(url), with needs: { http: true } in the definition",
	"XMLHttpRequest":  "use await ctx.http.get(url), with needs: { http: true } in the definition",
	"process":         "there is no process: the environment is ctx.env, with needs: { env: [\"NAME\"] } in the definition",
	"Buffer":          "use import base64 from \"weir/base64\", or strings",
	"structuredClone": "use JSON.parse(JSON.stringify(x)), or copy() of a record",
	"Intl":            "there is no Intl: use import time from \"weir/time\" to format times",
	"global":          "there are no globals to share: keep values in state",
	"window":          "there is no window: a script runs in weir, not in a browser",
	"queueMicrotask":  "use Promise.resolve().then(fn)",
	"eval":            "there is no eval: a script is what its files say",
}

var notDefined = regexp.MustCompile(`^ReferenceError: (\w+) is not defined$`)

// hint returns a hint for a message of goja.
func (v *vm) hint(msg string) string {
	if m := notDefined.FindStringSubmatch(msg); m != nil {
		if h, ok := instead[m[1]]; ok {
			if v.test != nil && strings.HasPrefix(h, noTimers) {
				return noTimers + `: advance("30s") of a component moves its clock`
			}
			return h
		}
		if v.prog.stdlib[m[1]] != nil {
			return "write import " + m[1] + " from \"" + libPrefix + m[1] + "\" above"
		}
		if m[1] == "ctx" {
			return "ctx is an argument of the hook: write metrics(batch, ctx)"
		}
	}
	return ""
}
