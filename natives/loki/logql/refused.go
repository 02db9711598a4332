//go:build nologql

package logql

import "github.com/weir-run/weir/engine/batch"

// Linked reports whether this build has LogQL.
const Linked = false

// Pipeline has no function in this build.
type Pipeline struct{}

// Parse refuses all pipelines.
func Parse(string) (*Pipeline, error) {
	return nil, &Error{Offset: -1, Msg: "this weir was built without LogQL (-tags nologql): use other stages, such as stage.json and stage.match, or a weir that was built with LogQL"}
}

// Machine has no function in this build, because none is ever created.
type Machine struct{}

const never = "BUG: a pipeline that was refused is used"

func (*Pipeline) Machines(bool, []string) func() (*Machine, error) { panic(never) }

func (*Pipeline) ChangesStreams() bool { panic(never) }

func (*Machine) Process(*batch.Stream, int64, string, []batch.Label) bool { panic(never) }

func (*Machine) Line() (string, bool) { panic(never) }

func (*Machine) Value(string) (string, bool, bool) { panic(never) }

func (*Machine) ChangedStream() bool { panic(never) }

func (*Machine) AppendStream([]batch.Label) []batch.Label { panic(never) }

func (*Machine) AppendMeta([]batch.Label) []batch.Label { panic(never) }

func (*Machine) AppendParsed([]batch.Label) []batch.Label { panic(never) }
