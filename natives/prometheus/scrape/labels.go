package scrape

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// withTarget returns the scraped labels together with those of the target. If
// both have a label, the target's value is used and the scraped value moves to
// exported_<name>; with honor, the scraped value is used.
func withTarget(scraped labels.Labels, target []labels.Label, honor bool) labels.Labels {
	b := labels.NewBuilder(scraped)
	var conflicts []labels.Label
	for _, l := range target {
		switch was := scraped.Get(l.Name); {
		case honor && scraped.Has(l.Name):
			continue
		case !honor && was != "":
			conflicts = append(conflicts, labels.Label{Name: l.Name, Value: was})
		}
		b.Set(l.Name, l.Value)
	}
	slices.SortStableFunc(conflicts, func(a, b labels.Label) int { return len(a.Name) - len(b.Name) })
	for _, l := range conflicts {
		name := model.ExportedLabelPrefix + l.Name
		for b.Get(name) != "" {
			name = model.ExportedLabelPrefix + name
		}
		b.Set(name, l.Value)
	}
	return b.Labels()
}

// partOf reports whether a sample of that name belongs to a metric family. In
// both text formats, a line may follow metadata of another family.
func partOf(name, family string, typ model.MetricType) bool {
	if !strings.HasPrefix(name, family) {
		return false
	}
	cut := func(suffixes ...string) string {
		for _, s := range suffixes {
			if short, ok := strings.CutSuffix(name, s); ok {
				return short
			}
		}
		return name
	}
	switch typ {
	case model.MetricTypeCounter: // In Prometheus text, the family name contains _total too.
		return strings.TrimSuffix(family, "_total") == cut("_total")
	case model.MetricTypeHistogram:
		return family == cut("_bucket", "_sum", "_count")
	case model.MetricTypeGaugeHistogram:
		return family == cut("_bucket", "_gsum", "_gcount")
	case model.MetricTypeSummary:
		return family == cut("_sum", "_count")
	case model.MetricTypeInfo:
		return strings.TrimSuffix(family, "_info") == cut("_info")
	}
	return family == name
}
