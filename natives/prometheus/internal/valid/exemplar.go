package valid

import (
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/weir-run/weir/engine/batch"
)

// Reasons for which exemplars are dropped.
const (
	// ExemplarLength: names and values have more than MaxExemplarRunes characters.
	ExemplarLength = "too_long"
	// ExemplarLabels: a name is empty or not unique, or a name or value is not
	// UTF-8, which strict receivers refuse together with the whole request.
	ExemplarLabels = "invalid_labels"
)

// MaxExemplarRunes is the maximum number of characters in all label names and
// values of an exemplar together.
const MaxExemplarRunes = exemplar.ExemplarMaxLabelSetLength

// CheckExemplar returns the reason why an exemplar with these labels is dropped,
// or "". As in Prometheus, labels with an empty value do not count, because they
// are not sent.
func CheckExemplar(ls []batch.Label) (reason string) {
	runes := 0
	for i, l := range ls {
		if l.Value == "" {
			continue
		}
		if l.Name == "" || !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return ExemplarLabels
		}
		if runes += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value); runes > MaxExemplarRunes {
			return ExemplarLength
		}
		for _, before := range ls[:i] { // the number is small, because each takes at least two runes
			if before.Name == l.Name && before.Value != "" {
				return ExemplarLabels
			}
		}
	}
	return ""
}
