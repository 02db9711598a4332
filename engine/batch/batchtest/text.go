package batchtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Histogram is a native histogram in text form.
const Histogram = "{count:3,sum:1.5,positive_spans:[0:2],positive_buckets:[1,2]}"

// MetricsText returns a random batch of up to 30 samples in text form. The labels
// job and env may be missing. Among the values are NaN, staleness markers and
// native histograms.
func MetricsText(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.IntN(30) {
		fmt.Fprintf(&b, `%s{series="%d"%s} %s`+"\n", pick(r, "go_threads", "go", "up", "x_go_ms"), i, someLabels(r), pick(r, "0", "-1", "1.5", "10", "NaN", "+Inf", "-Inf", "stale", Histogram))
	}
	return b.String()
}

// LogsText returns a random batch of up to 30 log lines in text form. The labels
// job and env may be missing, or be structured metadata instead.
func LogsText(r *rand.Rand) string {
	var b strings.Builder
	for i := range 1 + r.IntN(30) {
		meta := ""
		if r.IntN(3) == 0 {
			meta = fmt.Sprintf(`{trace="t%d"%s} `, i, someLabels(r))
		}
		fmt.Fprintf(&b, `{stream="%d"%s} %s%q`+"\n", i%5, someLabels(r), meta, pick(r, "", "api", "GET /health", "level=debug GET /", "debug", "Übung \xff"))
	}
	return b.String()
}

// someLabels returns labels to append to the labels of a record.
func someLabels(r *rand.Rand) string {
	text := ""
	for _, label := range []string{"job", "env"} {
		if v := pick(r, "", "api", "api-2", "dev", "x"); v != "" {
			text += fmt.Sprintf(`,%s=%q`, label, v)
		}
	}
	return text
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }
