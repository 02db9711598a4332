package telemetry_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/service/telemetry"
)

// TestRecent: the last lines are kept, whole, whatever their number and size.
func TestRecent(t *testing.T) {
	s, err := telemetry.New(telemetry.Options{Output: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	const most = 512 << 10
	if got := s.Recent(); len(got) > 0 {
		t.Errorf("got %q before the first line", got)
	}
	for i := range 20_000 {
		s.Logger().Info("line", "i", i, "text", strings.Repeat("x", i%300))
		if i == 9 && bytes.Count(s.Recent(), []byte("\n")) != 10 {
			t.Errorf("got %q", s.Recent())
		}
	}
	s.Logger().Info(strings.Repeat("y", most)) // does not fit
	got := s.Recent()
	lines := strings.Split(strings.TrimSuffix(string(got), "\n"), "\n")
	if len(got) > most || len(got) < most-500 {
		t.Errorf("kept %d bytes", len(got))
	}
	for k, line := range lines {
		if want := fmt.Sprintf("msg=line i=%d text=", 20_000-len(lines)+k); !strings.Contains(line, want) {
			t.Fatalf("line %d of %d is %q, without %q", k, len(lines), line, want)
		}
	}
}
