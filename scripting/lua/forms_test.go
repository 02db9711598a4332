package lua_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForms checks what is said of the first things that newcomers write, before
// the script runs and when it does.
func TestForms(t *testing.T) {
	f := func(body, want, hint string) {
		t.Helper()
		src := metrics(body)
		found := lint(t, src)
		if hint != "" {
			want += " | " + hint
		}
		if !strings.Contains(found, want+"\n") {
			t.Errorf("%s: the linter says %q, want %q", body, found, want)
		}
		fx := build(t, src, "")
		fx.send(t, "m{a=\"1\"} 1\n")
		if h := fx.Health(); !strings.Contains(h.Message, hint) {
			t.Errorf("%s: health says %q, want %q", body, h.Message, hint)
		}
	}
	const loop = "write for r in batch:records() do … end"
	// Wrong uses of a batch.
	f(`for i, r in ipairs(batch) do r.value = 1 end`, `3:13: cannot use ipairs(batch): a batch is not a table`, loop)
	f(`for k, r in pairs(batch) do r.value = 1 end`, `3:13: cannot use pairs(batch): a batch is not a table`, loop)
	f(`for r in batch do r.value = 1 end`, `3:10: cannot go over batch: a batch is not an iterator`, loop)
	f(`for r in batch.records do r.value = 1 end`, `3:16: cannot go over batch.records: it is a function, which must be called`, loop)
	f(`for i, r in ipairs(batch:records()) do end`, `3:13: cannot use ipairs(batch:records()): an iterator stands alone after in`, loop)
	f(`for group in batch:group_by { "name" } do for _, r in ipairs(group) do r.value = 1 end end`, `3:55: cannot use ipairs(group): a group is not a table`, `write for r in group:records() do … end`)
	// One value too many.
	f(`for _, r in batch:records() do r.value = 1 end`, `3:8: r is nil: batch:records() gives one value at a time, the record`, `write for r in batch:records() do … end`)
	// Calls of values that are not functions.
	f(`ctx.log("x")`, `3:5: cannot call ctx.log: it is not a function`, `write ctx.log.info(…); there is also debug, warn and error`)
	f(`batch[1].name()`, `3:10: cannot call record.name: it is not a function`, "")
	// Names that scripts do not have.
	f(`local x = math.random()`, `3:16: cannot call math.random: there is no such function`, `there is no randomness in a script: the same input gives the same output; to keep one in ten, write require("hash").bucket(s.labels.instance, 10) == 0`)
	f(`local x = os.time()`, `3:11: there is no global "os": it is nil`, `there is no os in a script: the clock of a batch is ctx.now, times are formatted by require "time"`)
	f(`local f = io.open("x")`, `3:11: there is no global "io": it is nil`, `there are no files in a script`)
	f(`string.split("a,b", ",")`, `3:8: cannot call string.split: there is no such function`, `write local text = require "text" above, and text.split(s, ",")`)
	f(`local a = table.unpack({})`, `3:17: cannot call table.unpack: there is no such function`, `write unpack(t)`)
	f(`local a = math.absolute(1)`, `3:16: cannot call math.absolute: there is no such function`, "")
}

// TestFormsThatAreRight has scripts that look like those of TestForms and work.
func TestFormsThatAreRight(t *testing.T) {
	for _, body := range []string{
		`for r in batch:records() do r.value = 1 end`,
		`local n = 0 for _, r in batch:records() do n = n + 1 end`,
		`for r, more in batch:records() do r.value = 1 end`,
		`for i, v in batch:rows("value") do batch:set(i, "value", v) end`,
		`for group, name in batch:group_by { "name" } do for i = 1, #group do group[i].value = 1 end end`,
		`for k, v in pairs(batch[1].labels) do end`,
		`local unpack = table.unpack or unpack local a = unpack({ 1 })`,
		`local split = string.split if split then split("a") end`,
		`if string.split then string.split("a") end`,
		`for k, v in pairs(batch[1]) do end`,
		`if os then os.time() end`,
		`local clock = os and os.clock`,
		`local math = { random = function() return 4 end } local x = math.random()`,
		`local function ipairs(x) return pairs({}) end for i, r in ipairs(batch) do end`,
		`local op = "drop_label" batch[op](batch, "x")`,
		`local log = ctx.log log.info("x") ctx.log:info("y")`,
		`local x = string.format("%d", #batch) .. math.floor(math.pi) .. table.concat({}) .. coroutine.status(coroutine.create(function() end))`,
	} {
		src := metrics(body)
		var mistakes []string
		for line := range strings.Lines(lint(t, src)) {
			if !strings.HasPrefix(line, "warning: ") {
				mistakes = append(mistakes, line)
			}
		}
		if diff := cmp.Diff([]string(nil), mistakes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		fx := build(t, src, "")
		fx.send(t, "m{a=\"1\"} 1\n")
		if h := fx.Health(); h.Message != "" {
			t.Errorf("%s: health says %q", body, h.Message)
		}
	}
}
