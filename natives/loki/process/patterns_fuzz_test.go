package process_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting/hostiletest"
)

// patternStages are the stages that match with the expression %s or with the
// label p.
var patternStages = []string{
	"stage.replace {\nexpression = %s\nreplace = \"{{ .Value }}z\"\n}", "stage.regex {\nexpression = %s\n}", "stage.drop {\nexpression = %s\n}", "stage.multiline {\nfirstline = %s\n}",
	"stage.luhn {\nmin_length = 1\nskip_regex = %s\n}",
	"stage.template {\nsource = \"out\"\ntemplate = \"{{ regexReplaceAll .p .Entry \\\"$1z\\\" }}\"\n}\nstage.output {\nsource = \"out\"\n}",
	"stage.template {\nsource = \"out\"\ntemplate = \"{{ len (regexSplit .p .Entry -1) }}{{ len (regexFindAll .p .Entry -1) }}{{ regexMatch .p .Entry }}{{ repeat (int .n) .Entry }}\"\n}\nstage.output {\nsource = \"out\"\n}",
}

func FuzzPatterns(f *testing.F) {
	hostiletest.FuzzPatterns(f, "TestPatternsInChild", len(patternStages))
}

func TestPatternsInChild(t *testing.T) {
	hostiletest.ServePatterns(t, func(t testing.TB) func(hostiletest.Pattern) error {
		n := newHarness(t)
		return func(p hostiletest.Pattern) error {
			stages := patternStages[p.Op]
			if strings.Contains(stages, "%s") {
				// Expressions in a configuration are trusted to have a reasonable
				// size.
				expr := "(?P<all>" + p.Pattern + ")"
				if len(expr) > 200 {
					return nil
				}
				if _, err := regexp.Compile(expr); err != nil {
					return nil
				}
				stages = strings.Replace(stages, "%s", strconv.Quote(expr), 1)
			}
			n.rebuild(stages)
			var labels batch.Builder
			labels.Set("p", strings.ToValidUTF8(p.Pattern, ""))
			labels.Set("n", strconv.Itoa(p.N))
			s := labels.Series(nil)
			defer s.Release()
			err := n.c.ConsumeLogs(t.Context(), &batch.Logs{Stream: []*batch.Stream{s}, T: []int64{1}, Line: []string{p.Text()}})
			n.takeBatches()
			return err
		}
	})
}
