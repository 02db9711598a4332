package process_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/natives/loki/process"
)

// arguments lists the arguments of all stages except logql: name, type, whether
// they are required, default. Stages that Alloy has take the same arguments,
// except that longer_than and the limit of truncate are sizes.
const arguments = `
cri block
cri.max_partial_line_size number = 0
cri.max_partial_line_size_truncate bool = false
cri.max_partial_lines number = 100
decolorize block
docker block
drop block
drop.drop_counter_reason string = "drop_stage"
drop.expression string
drop.longer_than size
drop.older_than duration = "0s"
drop.separator string = ";"
drop.source string
drop.value string
eventlogmessage block
eventlogmessage.drop_invalid_labels bool = false
eventlogmessage.overwrite_existing bool = false
eventlogmessage.source string = "message"
forward_to list(receiver) required
geoip block
geoip.custom_lookups map(string)
geoip.db string required
geoip.db_type string
geoip.source string required
json block
json.drop_malformed bool = false
json.expressions map(string)
json.regex string
json.source string
label_drop block
label_drop.values list(string) required
label_keep block
label_keep.values list(string) required
labels block
labels.source_type string = "extracted"
labels.values map(string) required
limit block
limit.burst number required
limit.by_label_name string
limit.drop bool = false
limit.max_distinct_labels number = 10000
limit.rate number required
logfmt block
logfmt.mapping map(string)
logfmt.regex string
logfmt.source string
luhn block
luhn.delimiters string
luhn.min_length number = 13
luhn.replacement string = "**REDACTED**"
luhn.skip_regex string
luhn.source string
match block
match.action string = "keep"
match.drop_counter_reason string = "match_stage"
match.pipeline_name string
match.selector string required
metrics block
metrics.metric.counter block
metrics.metric.counter.action string required
metrics.metric.counter.count_entry_bytes bool = false
metrics.metric.counter.description string
metrics.metric.counter.match_all bool = false
metrics.metric.counter.max_idle_duration duration = "5m"
metrics.metric.counter.name string required
metrics.metric.counter.prefix string
metrics.metric.counter.source string
metrics.metric.counter.value string
metrics.metric.gauge block
metrics.metric.gauge.action string required
metrics.metric.gauge.description string
metrics.metric.gauge.max_idle_duration duration = "5m"
metrics.metric.gauge.name string required
metrics.metric.gauge.prefix string
metrics.metric.gauge.source string
metrics.metric.gauge.value string
metrics.metric.histogram block
metrics.metric.histogram.buckets list(number) required
metrics.metric.histogram.description string
metrics.metric.histogram.max_idle_duration duration = "5m"
metrics.metric.histogram.name string required
metrics.metric.histogram.prefix string
metrics.metric.histogram.source string
metrics.metric.histogram.value string
multiline block
multiline.firstline string required
multiline.max_lines number = 128
multiline.max_wait_time duration = "3s"
multiline.trim_newlines bool = true
output block
output.source string required
pack block
pack.ingest_timestamp bool = true
pack.labels list(string) required
pattern block
pattern.labels_from_groups bool = false
pattern.pattern string required
pattern.source string
regex block
regex.expression string required
regex.labels_from_groups bool = false
regex.source string
replace block
replace.expression string required
replace.replace string
replace.source string
sampling block
sampling.drop_counter_reason string = "sampling_stage"
sampling.rate number required
split_json block
split_json.source string
static_labels block
static_labels.values map(string) required
structured_metadata block
structured_metadata.regex string
structured_metadata.values map(string)
structured_metadata_drop block
structured_metadata_drop.values list(string) required
template block
template.source string required
template.template string required
tenant block
tenant.label string
tenant.source string
tenant.value string
timestamp block
timestamp.action_on_duplicate_timestamp string = "fudge"
timestamp.action_on_failure string = "fudge"
timestamp.fallback_formats list(string)
timestamp.format string required
timestamp.location string
timestamp.source string required
truncate block
truncate.rule block required
truncate.rule.limit size required
truncate.rule.source_type string = "line"
truncate.rule.sources list(string)
truncate.rule.suffix string
windowsevent block
windowsevent.drop_invalid_labels bool = false
windowsevent.overwrite_existing bool = false
windowsevent.source string = "message"
`

// TestArguments compares names, types and defaults with the list.
func TestArguments(t *testing.T) {
	got := map[string]bool{}
	for _, f := range config.Describe(process.Registration().NewArgs()) {
		s := f.Path + " " + f.Type
		if f.Required {
			s += " required"
		}
		if f.Default != "" {
			s += " = " + f.Default
		}
		// The stages in a match are the same; logql exists in weir only.
		if s = strings.TrimPrefix(s, "stage."); !strings.HasPrefix(s, "match.stage.") && !strings.HasPrefix(s, "logql") {
			got[s] = true
		}
	}
	want := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(arguments)) {
		want[strings.TrimSpace(line)] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the constant arguments in arguments_test.go is not what the code says; change the one that is wrong (-constant +code):\n%s", diff)
	}
}
