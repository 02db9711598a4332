package process

import (
	"reflect"
	"strings"

	"github.com/weir-run/weir/engine/flow"
)

// Arguments of loki.process.
type Arguments struct {
	// Receivers of the lines that remain after the stages.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Stages that process each line, in the order in which they are written. A stage
	// that evaluates a regular expression or a template gives up on a line after 1 s or
	// if the result exceeds 16 MiB, and on all long lines of a batch after 5 s. Such
	// lines are dropped with the reason match_limit.
	Stages []Stage `alloy:"stage,enum,optional"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Stage is one stage block. Exactly one of its fields is set. The fields are the
// list of all stages.
type Stage struct {
	// Reads the container log format of Kubernetes (CRI) and joins partial lines.
	CRI *CRIArguments `alloy:"cri,block,optional"`
	// Removes ANSI escape sequences such as colours.
	Decolorize *DecolorizeArguments `alloy:"decolorize,block,optional"`
	// Reads the lines of Docker's json-file logging driver.
	Docker *DockerArguments `alloy:"docker,block,optional"`
	// Drops lines that meet all given conditions.
	Drop *DropArguments `alloy:"drop,block,optional"`
	// Extracts names and values from messages of the Windows event log.
	EventLogMessage *EventLogMessageArguments `alloy:"eventlogmessage,block,optional"`
	// Looks up IP addresses in a GeoIP database and extracts the results.
	GeoIP *GeoIPArguments `alloy:"geoip,block,optional"`
	// Extracts values from JSON.
	JSON *JSONArguments `alloy:"json,block,optional"`
	// Removes labels.
	LabelDrop *LabelDropArguments `alloy:"label_drop,block,optional"`
	// Removes all labels except the given ones.
	LabelKeep *LabelKeepArguments `alloy:"label_keep,block,optional"`
	// Sets labels from extracted values or structured metadata.
	Labels *LabelsArguments `alloy:"labels,block,optional"`
	// Limits the number of lines per second.
	Limit *LimitArguments `alloy:"limit,block,optional"`
	// Extracts values from logfmt.
	Logfmt *LogfmtArguments `alloy:"logfmt,block,optional"`
	// Replaces credit card numbers and other numbers with a valid Luhn check digit.
	Luhn *LuhnArguments `alloy:"luhn,block,optional"`
	// Runs a LogQL pipeline.
	LogQL *LogQLArguments `alloy:"logql,block,optional"`
	// Passes the lines that match a selector through nested stages, or drops them.
	Match *MatchArguments `alloy:"match,block,optional"`
	// Creates metrics from lines and extracted values and adds them to weir's own
	// metrics.
	Metrics *MetricsArguments `alloy:"metrics,block,optional"`
	// Joins several lines, such as a stack trace, into one.
	Multiline *MultilineArguments `alloy:"multiline,block,optional"`
	// Replaces the line with an extracted value.
	Output *OutputArguments `alloy:"output,block,optional"`
	// Packs a line and labels into a JSON object.
	Pack *PackArguments `alloy:"pack,block,optional"`
	// Extracts values from text with a LogQL pattern.
	Pattern *PatternArguments `alloy:"pattern,block,optional"`
	// Extracts values from text with a regular expression.
	Regex *RegexArguments `alloy:"regex,block,optional"`
	// Replaces parts of the line or of an extracted value.
	Replace *ReplaceArguments `alloy:"replace,block,optional"`
	// Keeps a random sample of the lines.
	Sampling *SamplingArguments `alloy:"sampling,block,optional"`
	// Creates a line from each element of a JSON list.
	SplitJSON *SplitJSONArguments `alloy:"split_json,block,optional"`
	// Sets labels.
	StaticLabels *StaticLabelsArguments `alloy:"static_labels,block,optional"`
	// Sets structured metadata from extracted values and labels.
	StructuredMetadata *StructuredMetadataArguments `alloy:"structured_metadata,block,optional"`
	// Removes structured metadata.
	StructuredMetadataDrop *StructuredMetadataDropArguments `alloy:"structured_metadata_drop,block,optional"`
	// Sets an extracted value to the result of a template.
	Template *TemplateArguments `alloy:"template,block,optional"`
	// Sets the tenant.
	Tenant *TenantArguments `alloy:"tenant,block,optional"`
	// Sets the timestamp from an extracted value.
	Timestamp *TimestampArguments `alloy:"timestamp,block,optional"`
	// Truncates lines, labels, metadata and extracted values that are too long.
	Truncate *TruncateArguments `alloy:"truncate,block,optional"`
	// Extracts names and values from messages of Windows events.
	WindowsEvent *WindowsEventArguments `alloy:"windowsevent,block,optional"`
}

// arguments returns the arguments of the stage that is set.
func (s Stage) arguments() stageArguments {
	_, a := s.set()
	return a
}

// set returns the name and the arguments of the stage that is set.
func (s Stage) set() (name string, a stageArguments) {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsNil() {
			name, _, _ = strings.Cut(v.Type().Field(i).Tag.Get("alloy"), ",")
			return name, f.Interface().(stageArguments)
		}
	}
	panic("BUG: no field of the stage is set")
}

// Exports of loki.process.
type Exports struct {
	// Receiver of the lines to process.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
