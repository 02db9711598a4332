package process

import (
	"reflect"

	"github.com/weir-run/weir/engine/flow"
)

// Arguments of loki.process.
type Arguments struct {
	// Receivers to send the lines to that the stages leave.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// What is done with each line, in the order in which it is written. A stage that
	// matches an expression or runs a template gives up on a line after 1 s, or when
	// it would make more than 16 MiB of it, and on all long lines of a batch after
	// 5 s. Such a line is dropped with the reason match_limit.
	Stages []Stage `alloy:"stage,enum,optional"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Stage is one stage block: the one field that is set. This is the list of all
// stages.
type Stage struct {
	// Reads the lines of container runtimes of Kubernetes and joins their parts.
	CRI *CRIArguments `alloy:"cri,block,optional"`
	// Removes colours and other commands to terminals.
	Decolorize *DecolorizeArguments `alloy:"decolorize,block,optional"`
	// Reads the lines of Docker's driver json-file.
	Docker *DockerArguments `alloy:"docker,block,optional"`
	// Drops lines that meet all of the given conditions.
	Drop *DropArguments `alloy:"drop,block,optional"`
	// Extracts the names and values in messages of the Windows event log.
	EventLogMessage *EventLogMessageArguments `alloy:"eventlogmessage,block,optional"`
	// Extracts where IP addresses are, or what else a database knows of them.
	GeoIP *GeoIPArguments `alloy:"geoip,block,optional"`
	// Takes values out of JSON.
	JSON *JSONArguments `alloy:"json,block,optional"`
	// Removes labels.
	LabelDrop *LabelDropArguments `alloy:"label_drop,block,optional"`
	// Removes all labels but some.
	LabelKeep *LabelKeepArguments `alloy:"label_keep,block,optional"`
	// Makes labels of extracted values or of structured metadata.
	Labels *LabelsArguments `alloy:"labels,block,optional"`
	// Bounds how many lines pass in a second.
	Limit *LimitArguments `alloy:"limit,block,optional"`
	// Takes values out of logfmt.
	Logfmt *LogfmtArguments `alloy:"logfmt,block,optional"`
	// Replaces numbers of cards and others that end with a check digit.
	Luhn *LuhnArguments `alloy:"luhn,block,optional"`
	// Runs a pipeline of LogQL.
	LogQL *LogQLArguments `alloy:"logql,block,optional"`
	// Passes the lines that a selector means through stages of their own, or drops
	// them.
	Match *MatchArguments `alloy:"match,block,optional"`
	// Counts lines and extracted values, for weir's own metrics.
	Metrics *MetricsArguments `alloy:"metrics,block,optional"`
	// Joins the lines of a block, such as a stack trace, into one.
	Multiline *MultilineArguments `alloy:"multiline,block,optional"`
	// Makes an extracted value the line.
	Output *OutputArguments `alloy:"output,block,optional"`
	// Packs a line and labels into a JSON object.
	Pack *PackArguments `alloy:"pack,block,optional"`
	// Takes values out of text by a pattern of LogQL.
	Pattern *PatternArguments `alloy:"pattern,block,optional"`
	// Takes values out of text by a regular expression.
	Regex *RegexArguments `alloy:"regex,block,optional"`
	// Replaces parts of the line or of a value.
	Replace *ReplaceArguments `alloy:"replace,block,optional"`
	// Leaves a part of the lines, by chance.
	Sampling *SamplingArguments `alloy:"sampling,block,optional"`
	// Makes a line of each element of a JSON list.
	SplitJSON *SplitJSONArguments `alloy:"split_json,block,optional"`
	// Sets labels.
	StaticLabels *StaticLabelsArguments `alloy:"static_labels,block,optional"`
	// Makes structured metadata of extracted values and labels.
	StructuredMetadata *StructuredMetadataArguments `alloy:"structured_metadata,block,optional"`
	// Removes structured metadata.
	StructuredMetadataDrop *StructuredMetadataDropArguments `alloy:"structured_metadata_drop,block,optional"`
	// Sets an extracted value to what a template makes of values.
	Template *TemplateArguments `alloy:"template,block,optional"`
	// Sets the tenant.
	Tenant *TenantArguments `alloy:"tenant,block,optional"`
	// Makes an extracted value the time.
	Timestamp *TimestampArguments `alloy:"timestamp,block,optional"`
	// Cuts lines, labels, metadata and extracted values that are too long.
	Truncate *TruncateArguments `alloy:"truncate,block,optional"`
	// Extracts the names and values in messages of Windows events.
	WindowsEvent *WindowsEventArguments `alloy:"windowsevent,block,optional"`
}

// arguments returns the arguments of the stage.
func (s Stage) arguments() stageArguments {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsNil() {
			return f.Interface().(stageArguments)
		}
	}
	panic("BUG: a stage that is none")
}

// Exports of loki.process.
type Exports struct {
	// Where lines to be processed go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
