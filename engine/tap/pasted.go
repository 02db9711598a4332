package tap

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// Pasted are records as the text that somebody pasted, for a playground.
type Pasted struct {
	// Metrics are samples, and Logs are log lines, in the text form of batches. Lines are
	// log lines without labels.
	Metrics string `json:"metrics,omitempty"`
	Logs    string `json:"logs,omitempty"`
	Lines   string `json:"lines,omitempty"`
}

// Parse returns the records. now is their time unless they have one. The error is a
// *batch.SyntaxError.
func (p Pasted) Parse(now time.Time) (out flow.Batches, err error) {
	if strings.TrimSpace(p.Metrics) != "" {
		b, err := batch.ParseText(p.Metrics, batch.TextOptions{Source: batch.NewPushSource(), T: now.UnixMilli()})
		if err != nil {
			return out, err
		}
		out.Metrics = append(out.Metrics, b)
	}
	// Quoted, a line cannot be taken for a part of the text form.
	var lines strings.Builder
	for line := range strings.Lines(p.Lines) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			fmt.Fprintf(&lines, "{} %q\n", line)
		}
	}
	for _, text := range []string{p.Logs, lines.String()} {
		if strings.TrimSpace(text) == "" {
			continue
		}
		b, err := batch.ParseLogsText(text, batch.TextOptions{Source: batch.NewPushSource(), T: now.UnixNano()})
		if err != nil {
			return out, err
		}
		out.Logs = append(out.Logs, b)
	}
	return out, nil
}
