package static

import (
	"errors"
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Arguments of prometheus.exporter.static.
type Arguments struct {
	// Metrics in the Prometheus text format, as on a /metrics page.
	Text Text `alloy:"text,attr,optional"`
}

// Text is text in the Prometheus text format that can be parsed.
type Text string

// UnmarshalText accepts text that Prometheus's own parser accepts.
func (t *Text) UnmarshalText(text []byte) error {
	if _, err := families(string(text)); err != nil {
		return err
	}
	*t = Text(text)
	return nil
}

// MarshalText returns the text.
func (t Text) MarshalText() ([]byte, error) { return []byte(t), nil }

// families parses text. The error contains the affected line.
func families(text string) (map[string]*dto.MetricFamily, error) {
	p := expfmt.NewTextParser(model.LegacyValidation) // as in Alloy
	fs, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err == nil {
		return fs, nil
	}
	bad, ok := errors.AsType[expfmt.ParseError](err)
	if !ok {
		return nil, fmt.Errorf("cannot read the metrics: %w", err)
	}
	lines := strings.Split(text, "\n")
	if bad.Line < 1 || bad.Line > len(lines) {
		return nil, fmt.Errorf("cannot read the metrics: %s", bad.Msg)
	}
	hint := ""
	if bad.Line == len(lines) && !strings.HasSuffix(text, "\n") {
		hint = "; the last line must end too"
	}
	return nil, fmt.Errorf("cannot read line %d of the metrics: %s%s\n | %s", bad.Line, bad.Msg, hint, lines[bad.Line-1])
}
