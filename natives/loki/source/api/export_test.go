package api

import (
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock/clocktest"
)

// Row is one decoded line.
type Row struct {
	Labels string
	T      int64
	Line   string
	Meta   []batch.Label
}

// Decoder decodes bodies, for fuzz tests and benchmarks.
type Decoder struct{ set *settings }

// NewDecoder returns a Decoder without labels and rules.
func NewDecoder() *Decoder {
	return &Decoder{newSettings(&Arguments{}, clocktest.New(time.Unix(0, 0)))}
}

func (d *Decoder) decoder() *decoder {
	return &decoder{set: d.set, incoming: true, reserve: func(int64) bool { return true }, ended: func() bool { return false }}
}

// Rows returns the lines of a body, with the lines of a stream in order. bad is
// the error in some of its streams, err the error in the whole body.
func (d *Decoder) Rows(json bool, body []byte) (rows []Row, bad, err error) {
	x := d.decoder()
	if json {
		err = x.json(body)
	} else {
		err = x.protobuf(body)
	}
	for _, b := range x.byShard {
		for i := range b.Len() {
			rows = append(rows, Row{b.Stream[i].String(), b.T[i], b.Line[i], b.MetaOf(i)})
		}
	}
	return rows, x.problems.Err(), err
}

// Only decodes a body and returns the number of its lines.
func (d *Decoder) Only(json bool, body []byte) int {
	x := d.decoder()
	if json {
		_ = x.json(body)
	} else {
		_ = x.protobuf(body)
	}
	return x.rows
}

// EndAfter ends the request when the decoder has checked for it the given number
// of times. It returns the number of streams and lines that were decoded by then.
func (d *Decoder) EndAfter(asks int, form string, body []byte) (streams, lines int, ended bool) {
	x := d.decoder()
	x.ended = func() bool { asks--; return asks < 0 }
	var err error
	switch form {
	case "json":
		err = x.json(body)
	case "raw":
		err = x.raw(body)
	default:
		err = x.protobuf(body)
	}
	return x.streams, x.seen, errors.Is(err, errEnded)
}
