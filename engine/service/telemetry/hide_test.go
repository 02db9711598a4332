package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// No line shows what may be secret in a URL, wherever in the line it is.
func TestLinesHideURLs(t *testing.T) {
	for _, format := range []string{"logfmt", "json"} {
		var out bytes.Buffer
		r := newRoot(&out)
		r.set(slog.LevelDebug, format)
		const u = "http://joe:SECRET123@h/x?token=SECRET123"
		l := slog.New(&handler{root: r}).With("endpoint", u).WithGroup("g")
		l.Error("cannot ask "+u, "err", errors.New(`Post "`+u+`": refused`), "url", u)
		if got := out.String(); strings.Contains(got, "SECRET123") || strings.Count(got, "token=(hidden)") != 4 {
			t.Errorf("%s: got %s", format, got)
		}
	}
}
