package outbox_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/outbox"
)

// Metrics show the label of an endpoint to everyone who can connect. It
// contains no secret, and is different for each endpoint.
func TestLabel(t *testing.T) {
	f := func(url, want string) {
		t.Helper()
		if got := (outbox.Ref{URL: url}).Label(); got != want && (!strings.HasSuffix(want, "#") || len(got) != len(want)+6 || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
	// The usual paths for samples and lines are not hidden.
	for _, url := range []string{"http://h:9090/api/v1/write", "https://h/api/prom/push", "http://h:3100/loki/api/v1/push", "http://h/insert/0/prometheus/api/v1/write", "http://h", "http://h/"} {
		f(url, url)
	}
	f("https://hooks.example/services/T/B/xyz", "https://hooks.example/services/(hidden)#")
	f("https://joe:pass@h/api/v1/write?token=a", "https://h/api/v1/write?…#")
	a, b := outbox.Ref{URL: "https://h/A1B2C3"}.Label(), outbox.Ref{URL: "https://h/D4E5F6"}.Label()
	if a == b {
		t.Errorf("two endpoints have the label %s", a)
	}
}
