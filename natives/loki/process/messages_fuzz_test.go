package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
)

var messages = []string{
	"", ":", "::\r\n:", "Level: 4\r\nTask:  12\r\nLevel: 5", "a:\r\n\r\n\r\n\r\nb", "\xff: \xff", "é: x\u2028",
	"Read.\r\n\r\nSubject:\r\n\tSecurity ID:\t\tS-1-5\r\n\r\nIt occurs.\r\n\r\nPrivileges:\t\tA\r\n\t\t\tB\r\n\t\t\tC\r\nx y:z",
}

func FuzzEventLogMessage(f *testing.F) { fuzzMessages(f, "eventlogmessage", strings.NewReplacer()) }

// A value on several lines is joined with commas.
func FuzzWindowsEvent(f *testing.F) {
	fuzzMessages(f, "windowsevent", strings.NewReplacer("\t", "", "\r", "", "\n", "", ",", ""))
}

// fuzzMessages passes any message through a stage that finds names and values in
// it. Each name must be a valid label name, and each value must occur in the
// message, apart from the text that left removes from both.
func fuzzMessages(f *testing.F, stage string, left *strings.Replacer) {
	for _, s := range messages {
		f.Add(s, false, false)
		f.Add(s, true, true)
	}
	type settings struct{ drop, overwrite bool }
	labs := map[settings]*harness{}
	for _, s := range []settings{{false, false}, {false, true}, {true, false}, {true, true}} {
		labs[s] = builtLab(f, `
stage.regex {
	expression = "^(?s)(?P<message>.*)$"
}
stage.`+stage+` {
	drop_invalid_labels = `+fmt.Sprint(s.drop)+`
	overwrite_existing  = `+fmt.Sprint(s.overwrite)+`
}
stage.structured_metadata {
	regex = "."
}`)
	}
	f.Fuzz(func(t *testing.T, line string, drop, overwrite bool) {
		n := labs[settings{drop, overwrite}]
		in := &batch.Logs{Source: 1, Stream: []*batch.Stream{fuzzStream}, T: []int64{1}, Line: []string{line}}
		if err := n.c.ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		out := n.takeBatches()
		if len(out) != 1 || !slices.Equal(out[0].Line, in.Line) {
			t.Fatalf("%q became %v", line, out)
		}
		if out[0].Meta == nil {
			return
		}
		for _, l := range out[0].Meta[0] {
			if !model.LegacyValidation.IsValidLabelName(l.Name) || !utf8.ValidString(l.Value) {
				t.Errorf("%q gives %q=%q", line, l.Name, l.Value)
			}
			// app is a label of the stream, which regex matches too
			if l.Name != "app" && !strings.Contains(left.Replace(line), left.Replace(l.Value)) {
				t.Errorf("%q has no value %q, which %s has", line, l.Value, l.Name)
			}
		}
	})
}
