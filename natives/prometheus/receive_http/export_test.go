package receivehttp

import (
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/intake"
)

// Decoder is a decoder for fuzz tests and benchmarks.
type Decoder struct{ d *decoder }

// NewDecoder returns a Decoder with the default limits, except those for labels.
func NewDecoder() *Decoder {
	var l Limits
	l.SetToDefault()
	l.LabelLimit, l.LabelNameLengthLimit, l.LabelValueLengthLimit = 0, 0, 0
	return &Decoder{&decoder{
		known: newKnown(), held: newHeld(), limits: &l, meta: true, reserve: func(int64) bool { return true }, ended: func() bool { return false },
		now: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
	}}
}

// Decode returns the batches of a body by shard, the error for the client, and
// the error if the message is refused.
func (d *Decoder) Decode(message string, body []byte) (bs []*batch.Metrics, bad, err error) {
	defer d.d.reset()
	d.d.held = newHeld()
	if message == messageV1 {
		err = d.d.decodeV1(body)
	} else {
		err = d.d.decodeV2(body)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, b := range d.d.split(intake.Shards) {
		if b != nil {
			bs = append(bs, b)
		}
	}
	return bs, d.d.problems.Err(), nil
}

// Only decodes a body without creating batches.
func (d *Decoder) Only(message string, body []byte) (rows int, err error) {
	defer d.d.reset()
	if message == messageV1 {
		err = d.d.decodeV1(body)
	} else {
		err = d.d.decodeV2(body)
	}
	return len(d.d.t), err
}

// EndAfter ends the request when the decoder has checked for it the given number
// of times, and returns the number of rows that were decoded by then.
func (d *Decoder) EndAfter(asks int, message string, body []byte) (rows int, ended bool) {
	defer d.d.reset()
	d.d.ended = func() bool { asks--; return asks < 0 }
	decode := d.d.decodeV2
	if message == messageV1 {
		decode = d.d.decodeV1
	}
	err := decode(body)
	return len(d.d.t), errors.Is(err, errEnded)
}

// Now sets the time.
func (d *Decoder) Now(t time.Time) { d.d.now = t }

// Series returns the number of known series.
func (d *Decoder) Series() int { return d.d.known.len() }

// Break makes requests panic until mend is called.
func Break(c component.Component) (mend func()) {
	r := c.(*Component)
	k := r.known.Swap(nil)
	return func() { r.known.Store(k) }
}
