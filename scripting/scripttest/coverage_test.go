package scripttest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting/scripttest"
)

// branches has ifs of every kind and a library, in both languages.
const branches = `
-- scripts/a/both.lua --
local weir = require "weir"
local shared = require "shared"
return weir.transform {
  metrics = function(batch)
    batch:each(function(m)
      if m.value > 10 then
        m.labels.size = "large"
      elseif m.value > 5 then
        m.labels.size = "medium"
      end
      if m.name == "never" then
        m.labels.a = "<b>"
        m.labels.b = shared.name()
      else
        m.labels.c = "c" m.labels.d = shared.other()
      end
    end)
  end,
}
-- scripts/a/both_test.lua --
local t = weir.test.component("both.lua")
it("large", function() assert.equals(3, #t:metrics "up 11\nup 12\nup 1") end)
-- scripts/a/plain.ts --
import { defineTransform } from "weir";
export default defineTransform({
  metrics(batch) {
    batch.each((m) => {
      if (m.value > 10) {
        m.labels.size = "large";
      } else if (m.value > 5) {
        m.labels.size = "medium";
      }
    });
  },
});
-- scripts/a/plain.test.ts --
import { component, it } from "weir/test";
it("medium", () => { component("plain.ts").metrics("up 6\nup 6"); });
-- scripts/a/untested.lua --
local weir = require "weir"
return weir.transform {
  metrics = function(batch) batch:clear() end }
-- scripts/lib/shared.lua --
local M = {}
function M.name()
  return "x"
end
function M.other()
  return "y"
end
return M
`

// covered runs the tests of an archive with coverage.
func covered(t *testing.T, files string) *scripttest.Coverage {
	t.Helper()
	write(t, archive(files))
	o := options()
	o.Coverage = true
	r := run(t, o)
	if !r.OK() || r.Coverage == nil {
		t.Fatalf("got %v, coverage: %v", ends(r), r.Coverage != nil)
	}
	return r.Coverage
}

// Lines and branches that did not run are named, those of libraries too.
func TestCoverage(t *testing.T) {
	c := covered(t, branches)
	const want = `coverage                  lines  branches  lines that did not run
scripts/a/both.lua        72.7%     60.0%  9, 12-13
scripts/a/plain.ts        83.3%     33.3%  6
scripts/a/untested.lua    66.7%         -  3
scripts/lib/shared.lua    83.3%         -  3
total                     76.9%     50.0%
`
	var b strings.Builder
	if err := scripttest.WriteCoverage(&b, c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lines, arms := c.Total()
	if diff := cmp.Diff([]scripttest.Share{{Ran: 20, All: 26}, {Ran: 4, All: 8}}, []scripttest.Share{lines, arms}); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	if got := (scripttest.Share{}).Percent(); got != 100 {
		t.Errorf("got %v %% of nothing, want 100", got)
	}
}

// Tests that ran elsewhere, and those that were not chosen, cover nothing.
func TestCoverageOfChosen(t *testing.T) {
	write(t, archive(branches))
	o := options("scripts/a/plain.ts")
	o.Coverage = true
	c := run(t, o).Coverage
	if len(c.Files) != 1 || c.Files[0].Name != "scripts/a/plain.ts" {
		t.Errorf("got %d files, want plain.ts alone: %+v", len(c.Files), c.Files)
	}
	o = options()
	if c := run(t, o).Coverage; c != nil {
		t.Errorf("got %+v without being asked", c)
	}
}

// A branch that was never reached is "-", and one that was not taken 0.
func TestLCOV(t *testing.T) {
	f := func(c *scripttest.Coverage, want string) {
		t.Helper()
		var b strings.Builder
		if err := scripttest.WriteLCOV(&b, c); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f(covered(t, branches), `TN:
SF:scripts/a/both.lua
BRDA:6,0,0,2
BRDA:6,0,1,0
BRDA:6,0,2,1
BRDA:11,1,0,0
BRDA:11,1,1,3
BRF:5
BRH:3
DA:1,2
DA:2,2
DA:3,2
DA:5,1
DA:6,3
DA:7,2
DA:9,0
DA:11,3
DA:12,0
DA:13,0
DA:15,3
LF:11
LH:8
end_of_record
TN:
SF:scripts/a/plain.ts
BRDA:5,0,0,0
BRDA:5,0,1,2
BRDA:5,0,2,0
BRF:3
BRH:1
DA:1,2
DA:2,2
DA:4,1
DA:5,2
DA:6,0
DA:8,2
LF:6
LH:5
end_of_record
TN:
SF:scripts/a/untested.lua
BRF:0
BRH:0
DA:1,1
DA:2,1
DA:3,0
LF:3
LH:2
end_of_record
TN:
SF:scripts/lib/shared.lua
BRF:0
BRH:0
DA:1,2
DA:2,2
DA:3,0
DA:5,2
DA:6,3
DA:8,2
LF:6
LH:5
end_of_record
`)
	f(&scripttest.Coverage{}, "")
	f(&scripttest.Coverage{Files: []scripttest.FileCoverage{{
		Name: "a.lua", Lines: []scripttest.LineCoverage{{Line: 1}}, Branches: []scripttest.BranchCoverage{{Line: 1, Arms: []int64{0, 0}}},
	}}}, "TN:\nSF:a.lua\nBRDA:1,0,0,-\nBRDA:1,0,1,-\nBRF:2\nBRH:0\nDA:1,0\nLF:1\nLH:0\nend_of_record\n")
}

// The page shows every line with how often it ran, and escapes the scripts.
func TestHTML(t *testing.T) {
	var b strings.Builder
	if err := scripttest.WriteHTML(&b, covered(t, branches)); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"<title>76.9% of lines covered</title>",
		"<h1>76.9% of lines, 50.0% of branches</h1>",
		`<details open><summary><b>72.7%</b>scripts/a/both.lua</summary>`,
		`<span class="ran"><i>3× 15</i>`,
		`<span class="not"><i>0× 12</i>        m.labels.a = &#34;&lt;b&gt;&#34;</span>`,
		`<span class="part"><i>3× 6</i>      if m.value &gt; 10 then  <em>elseif 1 was never true</em></span>`,
		`<span class="part"><i>3× 11</i>      if m.name == &#34;never&#34; then  <em>never true</em></span>`,
		`<em>never true, else was never taken</em>`,
		`<span class=""><i> 14</i>      else</span>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// A file that ran completely is folded.
func TestHTMLFoldsWhatRan(t *testing.T) {
	c := covered(t, "-- scripts/a/one.lua --\n"+plain+"-- scripts/a/one_test.lua --\nit('x', function() weir.test.component('one.lua'):metrics 'up 1' end)\n")
	var b strings.Builder
	if err := scripttest.WriteHTML(&b, c); err != nil {
		t.Fatal(err)
	}
	if want := "<details><summary><b>100.0%</b>scripts/a/one.lua</summary>"; !strings.Contains(b.String(), want) {
		t.Errorf("no %s in\n%s", want, &b)
	}
}
