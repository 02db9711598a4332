package scripttest

import (
	"regexp"
	"strings"

	"github.com/prometheus/common/expfmt"

	"github.com/weir-run/weir/scripting"
)

// componentID is the label that all metrics of a component have.
var componentID = regexp.MustCompile(`component_id="[^"]*",?`)

// ownMetrics returns the metrics that the script has set with ctx.metrics, sorted: one
// line in the text format for each sample, without the label component_id.
func (n *testNode) ownMetrics() (out []string, err error) {
	families, err := n.registry.Gather()
	if err != nil {
		return nil, err
	}
	for _, f := range families {
		name, own := strings.CutPrefix(f.GetName(), "weir_script_custom_")
		if !own || name == "series" || name == "refused_total" { // about the metrics of the script
			continue
		}
		var text strings.Builder
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return nil, err
		}
		for line := range strings.Lines(text.String()) {
			if !strings.HasPrefix(line, "#") {
				line = strings.Replace(componentID.ReplaceAllString(line, ""), "{}", "", 1)
				out = append(out, strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return out, nil
}

// ownMetricsMethod is the method of a component under test.
func ownMetricsMethod() scripting.Function {
	return scripting.Function{
		Name: "own_metrics", Doc: `The metrics that the script has set with ctx.metrics, sorted, such as weir_script_custom_redacted_total{kind="email"} 2.`,
		Result: scripting.Result{Kind: scripting.KindList},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			lines, err := a[0].(*testNode).ownMetrics()
			return stringList(lines), err
		},
	}
}
