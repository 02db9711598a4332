package selector_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/natives/loki/internal/selector"
)

// BenchmarkLine matches a line of 200 bytes that passes, and its stream.
func BenchmarkLine(b *testing.B) {
	line := "level=info msg=" + strings.Repeat("x", 150) + " status=503 took=3ms"
	of := streamOf(b, `{app="api"}`)
	for name, src := range map[string]string{
		"text":       `{app="api"} |= "status=503" != "debug"`,
		"texts":      `{app="api"} |~ "status=50[23]" !~ "debug|trace"`,
		"expression": `{app="api"} |~ "status=5\\d\\d"`,
		"pattern":    `{app="api"} |> "<_> status=503 <_>"`,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := selector.Parse(src)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, _ := s.Line(line, regex.Guard{}); !ok || !s.Stream(of) {
					b.Fatal("it does not pass")
				}
			}
		})
	}
}
