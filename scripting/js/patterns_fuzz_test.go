package js_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/weir-run/weir/scripting/hostiletest"
)

// patternOps are the ways to match, each a function of a pattern p, flags f, a text
// s, a replacement w and the batch.
var patternOps = []string{
	`new RegExp(p, f).test(s)`, `new RegExp(p, f).exec(s)`, `s.match(new RegExp(p, f))`, `[...s.matchAll(new RegExp(p, f + "g"))]`, `s.replace(new RegExp(p, f), w)`,
	`s.replace(new RegExp(p, f), (m) => m + w)`, `s.replaceAll(new RegExp(p, f), w)`, `s.split(new RegExp(p, f))`, `s.split(new RegExp(p, f), 3)`, `s.search(new RegExp(p, f))`,
	`const re = new RegExp(p, f); re.lastIndex = 1; for (let i = 0; i < 1000; i++) re.exec(s)`, `/x/.compile(p, f).test(s)`,
	`class R extends RegExp { static get [Symbol.species]() { return function () { return new RegExp(p, f) } } } s.split(new R("x"))`,
	`const t = []; for (let i = 0; i < 1000; i++) t.push(new RegExp(p + i, f))`, `s.replaceAll(p, w)`, `re.replace(p, s, w)`, `re.split(p, s)`,
}

func FuzzPatterns(f *testing.F) { hostiletest.FuzzPatterns(f, "TestPatternsInChild", len(patternOps)) }

func TestPatternsInChild(t *testing.T) {
	hostiletest.ServePatterns(t, func(t testing.TB) func(hostiletest.Pattern) error {
		fx := build(t, `import { defineTransform } from "weir"; import re from "weir/re"; import base64 from "weir/base64"
const ops: any[] = [(p: string, f: string, s: string, w: string) => { `+strings.Join(patternOps, ` }, (p: string, f: string, s: string, w: string) => { `)+` }]
export default defineTransform({ metrics(batch) {
  const l = batch[0].labels
  const s = base64.decode(l.part ?? "").repeat(Number(l.n)) + base64.decode(l.after ?? "")
  ops[Number(l.op)](base64.decode(l.pattern ?? ""), base64.decode(l.flags ?? ""), s, base64.decode(l.insert ?? ""))
} })`, "script { limits { time = \"200ms\" } }")
		// One match may take longer than that, but not the second that it may elsewhere:
		// there are many seeds.
		regexp2.DefaultMatchTimeout = 250 * time.Millisecond
		return func(p hostiletest.Pattern) error {
			fx.send(t, "m{"+p.Labels()+"} 1\n")
			if h := fx.Health(); strings.Contains(h.Message, "BUG") {
				return errors.New(h.Message)
			}
			return nil
		}
	})
}
