package process_test

import (
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// FuzzStages passes arbitrary lines through all stages that read text. No stage
// may panic or lose a line that it should keep.
func FuzzStages(f *testing.F) {
	for _, s := range []string{
		`{"level":"info","msg":"x","t":"2025-01-01T00:00:00Z","list":[1,{"a":2}]}`, `level=info msg="x y" t=1`, "START\xff", `[{"a":1},2]`, "", "127.0.0.1 - \"GET\"",
	} {
		f.Add(s)
	}
	n := builtLab(f, `
stage.split_json { }
stage.json {
	expressions = { level = "", list = "", len = "length(list)" }
	regex       = "^m"
}
stage.logfmt {
	mapping = { level = "", msg = "" }
	regex   = "^a"
}
stage.regex {
	expression         = "(?P<word>\\w+)\\W*(?P<rest>.*)"
	labels_from_groups = true
}
stage.pattern {
	pattern = "<first> <_>\"<quoted>\"<end>"
}
stage.replace {
	expression = "(\\d+)"
	replace    = "<{{ .Value }}>"
}
stage.template {
	source   = "made"
	template = "{{ . }}{{ .Entry | ToUpper }}"
}
stage.timestamp {
	source           = "t"
	format           = "RFC3339"
	fallback_formats = ["Unix", "UnixMs", "Jan 2"]
}
stage.structured_metadata {
	regex = "."
}
stage.labels {
	values = { level = "", first = "", made = "" }
}
stage.tenant {
	source = "word"
}
stage.pack {
	labels = ["level", "rest"]
}
stage.output {
	source = "quoted"
}`)
	f.Fuzz(func(t *testing.T, line string) {
		in := &batch.Logs{Source: 1, Stream: []*batch.Stream{fuzzStream, fuzzStream}, T: []int64{1, 2}, Line: []string{line, "last"}}
		if err := n.c.ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, b := range n.takeBatches() {
			rows += b.Len()
			if len(b.T) != b.Len() || len(b.Line) != b.Len() || b.Meta != nil && len(b.Meta) != b.Len() {
				t.Fatal("the columns differ in length")
			}
		}
		if rows < 1 {
			t.Fatal("a line was lost")
		}
	})
}

var fuzzStream = batch.NewSeries([]batch.Label{{Name: "app", Value: "a"}})
