package process

import (
	"reflect"

	"github.com/weir-run/weir/engine/flow"
)

// Arguments of loki.process.
type Arguments struct {
	// Receivers to send the lines to that the stages leave.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// What is done with each line, in the order in which it is written.
	Stages []Stage `alloy:"stage,enum,optional"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Stage is one stage block: the one field that is set. This is the list of all
// stages.
type Stage struct {
	// Drops lines that meet all of the given conditions.
	Drop *DropArguments `alloy:"drop,block,optional"`
	// Takes values out of JSON.
	JSON *JSONArguments `alloy:"json,block,optional"`
	// Makes labels of extracted values or of structured metadata.
	Labels *LabelsArguments `alloy:"labels,block,optional"`
	// Passes the lines that a selector means through stages of their own, or drops
	// them.
	Match *MatchArguments `alloy:"match,block,optional"`
	// Makes an extracted value the line.
	Output *OutputArguments `alloy:"output,block,optional"`
}

// maker returns the arguments of the stage.
func (s Stage) maker() maker {
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsNil() {
			return f.Interface().(maker)
		}
	}
	panic("BUG: a stage that is none")
}

// Exports of loki.process.
type Exports struct {
	// Where lines to be processed go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
