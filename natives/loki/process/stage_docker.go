package process

import (
	"context"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/scan"
)

// DockerArguments are the arguments of stage.docker. It has no arguments.
type DockerArguments struct{}

// dockerStage reads the lines of Docker's json-file driver. Lines that are not a
// JSON object with the string member log stay unchanged.
//
// Format: https://docs.docker.com/engine/logging/drivers/json-file/
type dockerStage struct {
	object                    scan.Object // log, stream, time
	output, stream, timestamp int         // slots, negative for values that no stage reads
	derived                   *derivation
}

func (a *DockerArguments) compile(c *compiler) (stage, error) {
	s := &dockerStage{output: c.wanted("output"), stream: c.wanted("stream"), timestamp: c.wanted("timestamp")}
	for i, name := range []string{"log", "stream", "time"} {
		s.object.Add([]scan.Step{{Name: name, Index: -1}}, i)
	}
	s.derived = c.deriveStream()
	return s, nil
}

// wanted is write, but returns a negative slot if no stage reads the value.
func (c *compiler) wanted(name string) int {
	if slot, wanted := c.write(name); wanted {
		return slot
	}
	return -1
}

// setWanted sets a value unless no stage reads it.
func (p *pass) setWanted(slot, row int, v value) {
	if slot >= 0 {
		p.set(slot, row, v)
	}
}

// deriveStream registers a function that sets the label stream, the output
// (stdout or stderr) to which the container wrote.
func (c *compiler) deriveStream() *derivation {
	return c.derive(func(b *batch.Builder, values []value) { b.Set("stream", values[0].text) })
}

func (s *dockerStage) run(_ context.Context, p *pass) {
	for _, r := range p.rows {
		var found [3]scan.Value
		if !s.object.Find(p.line[r], found[:]) || found[0].Kind != scan.Text {
			continue
		}
		stream := value{text, found[1].Text}
		p.setWanted(s.output, r, value{text, found[0].Text})
		p.setWanted(s.stream, r, stream)
		p.setWanted(s.timestamp, r, value{text, found[2].Text})
		p.setLine(r, found[0].Text)
		if t, err := time.Parse(time.RFC3339Nano, found[2].Text); err == nil {
			p.setTime(r, t.UnixNano())
		}
		p.setStream(r, s.derived.derive(p.stream[r], []value{stream}))
	}
}
