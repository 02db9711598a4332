package process

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestSum(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(`# TYPE dropped counter
dropped{reason="corrupt",shard="0"} 1
dropped{reason="corrupt",shard="1"} 2
dropped{reason="old",shard="0"} 4
# TYPE waiting gauge
waiting 8
`))
	if err != nil {
		t.Fatal(err)
	}
	f := func(name, value string, want float64) {
		t.Helper()
		if got, err := Sum(families, name, value); got != want || err != nil {
			t.Errorf("%s %q: got %v, %v", name, value, got, err)
		}
	}
	f("dropped", "", 7)
	f("dropped", "corrupt", 3)
	f("waiting", "", 8)
	for _, name := range []string{"dropped", "lost"} {
		if got, err := Sum(families, name, "full"); err == nil {
			t.Errorf("%s: got %v without such a series", name, got)
		}
	}
}

// TestURL finds the address in logs and in messages for people.
func TestURL(t *testing.T) {
	f := func(out, want string) {
		t.Helper()
		p := &Process{}
		p.Write([]byte(out))
		if got := p.URL(); got != want {
			t.Errorf("%q: got %q, want %q", out, got, want)
		}
	}
	f("level=info msg=\"page: http://127.0.0.1:18199\"\n", "http://127.0.0.1:18199")
	f("  page    http://127.0.0.1:1\n", "http://127.0.0.1:1")
	f("started\n", "")
}
