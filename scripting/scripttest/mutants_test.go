package scripttest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

func survivors(m *scripttest.Mutants) (out []string) {
	for _, s := range m.Survivors {
		covered := ""
		if !s.Covered {
			covered = " (no test)"
		}
		out = append(out, fmt.Sprintf("%s:%d:%d %s%s", s.File, s.Line, s.Col, s.Change, covered))
	}
	return out
}

// mutate runs mutation tests of an archive and checks that no file changes.
func mutate(t *testing.T, text string) *scripttest.Mutants {
	t.Helper()
	files := archive(text)
	write(t, files)
	o := options()
	o.Mutate = time.Minute
	r := run(t, o)
	if !r.OK() || r.Mutants == nil {
		t.Fatalf("got %v, mutants %v", ends(r), r.Mutants)
	}
	for _, f := range files {
		if got := content(t, f.Name); got != string(f.Data) {
			t.Errorf("%s was changed:\n%s", f.Name, got)
		}
	}
	return r.Mutants
}

// Survivors are changes that no test notices, in the script and in its modules. A mutant
// that does not end is killed by a limit.
func TestMutants(t *testing.T) {
	m := mutate(t, `
-- scripts/lib/limit.lua --
return function(n) return n > 10 end
-- scripts/a/mark.lua --
local limit = require "limit"
local weir = require "weir"
return weir.transform { series = function(s)
  local i = 0
  while i < 3 do i = i + 1 end
  if i == 3 then s.labels.mark = "x" end
  if limit(5) then s.labels.more = "y" end
  local unused = 1 + 1 -- weir:ignore mutate nothing uses it
end }
-- scripts/a/mark_test.lua --
local t = weir.test.component("mark.lua")
it("marks", function() assert.same('up{mark="x"} 1', t:metrics "up 1") end)
-- scripts/a/double.ts --
import { defineTransform } from "weir";
const keep: 1 | 2 = 2;
export default defineTransform({
  series(s) {
    if (s.name === "never") {
      s.labels.x = "a" + "b";
    }
    s.labels.n = String(keep * 2);
  },
});
-- scripts/a/double.test.ts --
import { component, expect, it } from "weir/test";
it("doubles", () => { expect(component("double.ts").metrics("up 1")).toEqual('up{n="4"} 1'); });
`)
	want := []string{
		`scripts/a/double.ts:6:7 drop s.labels.x = "a" + "b"; (no test)`,
		`scripts/a/double.ts:6:20 "a" → "" (no test)`,
		`scripts/a/double.ts:6:24 + → - (no test)`,
		`scripts/a/double.ts:6:26 "b" → "" (no test)`,
		`scripts/a/mark.lua:7:20 drop s.labels.more = "y"`,
		`scripts/a/mark.lua:7:36 "y" → ""`,
		`scripts/lib/limit.lua:1:29 > → >=`,
		`scripts/lib/limit.lua:1:31 10 → 11`,
	}
	got := survivors(m)
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no survivor %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
	for _, killed := range []string{"mark.lua:5:", "mark.lua:6:", "mark.lua:8:", "double.ts:2:", "double.ts:8:"} {
		if strings.Contains(strings.Join(got, "\n"), killed) {
			t.Errorf("a mutant in %s survived:\n%s", killed, strings.Join(got, "\n"))
		}
	}
	if m.Ignored != 3 || m.Left != 0 || m.Killed+len(m.Survivors) != m.Tested {
		t.Errorf("got %+v", m)
	}
}

// When the time is short, it says how many mutants are left. A comment without a reason
// is an error.
func TestMutantsWithin(t *testing.T) {
	write(t, archive(marked+`
-- scripts/a/mark_test.lua --
local t = weir.test.component("mark.lua")
it("marks", function() assert.same('up{mark="x"} 1', t:metrics "up 1") end)
`))
	o := options()
	o.Mutate = time.Nanosecond
	m := run(t, o).Mutants
	if m.Tested != 0 || m.Left != 2 || m.Score() != 100 {
		t.Errorf("got %+v", m)
	}
	var b strings.Builder
	scripttest.Pretty{W: &b}.Mutants(m)
	if want := "The time was not enough for 2 mutants; the tested ones are spread evenly."; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in %s", want, b.String())
	}

	path := filepath.Join("scripts", "a", "mark.lua")
	if err := os.WriteFile(path, []byte("-- weir:ignore mutate\n"+content(t, path)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := scripttest.Run(t.Context(), o)
	want := "scripts/a/mark.lua:1: weir:ignore mutate has no reason: write why no test can notice a change of the line"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A failing test prevents mutation tests.
func TestNoMutantsOfFailingTests(t *testing.T) {
	write(t, archive(marked+"-- scripts/a/mark_test.lua --\nit('fails', function() assert.equals(1, 2) end)\n"))
	o := options()
	o.Mutate = time.Minute
	if r := run(t, o); r.Mutants != nil {
		t.Errorf("got %+v", r.Mutants)
	}
}

// The order of mutants spreads each beginning evenly.
func TestMutantsAreSpread(t *testing.T) {
	var sum int
	order := scripttest.Spread(100)
	for _, i := range order[:10] {
		sum += i
	}
	if sum < 350 || sum > 600 {
		t.Errorf("the first ten are %v", order[:10])
	}
	seen := map[int]bool{}
	for _, i := range order {
		seen[i] = true
	}
	if diff := cmp.Diff(100, len(seen)); diff != "" || len(order) != 100 {
		t.Errorf("got %d numbers, %d different", len(order), len(seen))
	}
}
