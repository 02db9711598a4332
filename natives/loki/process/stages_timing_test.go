package process_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// BenchmarkOneStage measures the cost of stages that do not depend on other
// stages, per line of 200 bytes.
func BenchmarkOneStage(b *testing.B) {
	plain := benchLines(b, false)
	with := func(format string) *batch.Logs {
		in := *plain
		in.Line = nil
		for _, l := range plain.Line {
			in.Line = append(in.Line, fmt.Sprintf(format, l))
		}
		return &in
	}
	benchStages(b, "cri", "stage.cri { }", with("2025-01-01T00:00:00.123456789Z stdout F %s"))
	benchStages(b, "docker", "stage.docker { }", with(`{"log":%q,"stream":"stdout","time":"2025-01-01T00:00:00.123456789Z"}`))
	f := func(name, stage string) { benchStages(b, name, stage, plain) }
	f("decolorize", "stage.decolorize { }")
	f("luhn", "stage.luhn { }")
	f("truncate", "stage.truncate {\nrule {\nlimit = \"1KiB\"\n}\n}")
	f("limit", "stage.limit {\nrate = 1e12\nburst = 1000000\ndrop = true\n}")
	f("sampling", "stage.sampling {\nrate = 0.5\n}")
	f("metrics", "stage.metrics {\nmetric.counter {\nname = \"a\"\nmatch_all = true\naction = \"inc\"\n}\n}")
}
