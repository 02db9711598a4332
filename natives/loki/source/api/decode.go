package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"unsafe"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/intake"
	"github.com/weir-run/weir/natives/loki/push"
)

// decoder decodes a body into batches, one for each shard. An error in a stream
// rejects only that stream; a body that is not a valid request is rejected as a
// whole.
type decoder struct {
	set      *settings
	tenant   string
	incoming bool
	now      int64 // Unix ns, for lines that need a time and have none
	reserve  func(int64) bool
	ended    func() bool // reports whether the request has ended

	byShard [intake.Shards]*batch.Logs
	to      *batch.Logs   // the batch of the stream's shard, nil if the stream is not accepted
	stream  *batch.Stream // the current stream
	reason  string        // why the stream is not accepted, or ""
	key     []byte

	seen          int            // number of lines
	rows, counted int            // number of accepted lines, and of lines for which memory was reserved
	dropped       map[string]int // number of dropped lines, by reason
	problems      intake.Problems
	streams       int
	err           error // errBusy or errEnded, if decoding cannot continue
}

var (
	errBusy  = errors.New("too much is in flight")
	errEnded = errors.New("the request has ended")
	// errLineLimit means that a request has too many lines.
	errLineLimit = errors.New("the request has more lines than line_limit")
)

// protobuf decodes a push request in protobuf.
func (d *decoder) protobuf(body []byte) error {
	r := push.NewReader(body)
	r.MetaLimit = d.set.limits.MetadataLimit
	for r.NextStream() {
		d.begin(d.set.ofText(d.tenant, r.Labels, &d.key))
		for r.NextEntry() {
			t := r.T
			if !r.Timed {
				t = d.now
				d.now++
			}
			d.add(t, r.Line, push.SortMeta(r.Meta))
			if d.err != nil {
				return d.err
			}
		}
		if d.err != nil {
			return d.err
		}
	}
	return r.Err()
}

// json decodes a push request in JSON.
func (d *decoder) json(body []byte) error {
	return pushJSON(text(body), &d.set.limits,
		func(ls []batch.Label) error { d.begin(d.set.ofLabels(d.tenant, ls)); return d.err },
		func(t int64, line string, meta []batch.Label) error {
			d.add(t, line, push.SortMeta(meta))
			return d.err
		})
}

// raw decodes a body with one entry per line.
func (d *decoder) raw(body []byte) error {
	d.incoming = false
	d.begin(d.set.plain(d.tenant))
	for line := range strings.Lines(text(body)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			d.add(0, line, nil)
		}
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

// begin begins a stream. If s is nil, its lines are dropped; if err is not nil,
// they are refused.
func (d *decoder) begin(s *batch.Stream, err error) {
	if d.streams++; d.streams%lookEvery == 0 && d.ended() {
		d.err = errEnded
	}
	d.stream, d.to, d.reason = s, nil, ""
	if err != nil {
		d.reason = "invalid_labels"
		if e, ok := errors.AsType[*refused](err); ok {
			d.reason = e.reason
		}
		d.problems.Add("%w", err)
		return
	}
	if s == nil {
		d.reason = "relabel"
		return
	}
	shard := s.Hash() % intake.Shards
	if d.byShard[shard] == nil {
		d.byShard[shard] = new(batch.Logs)
	}
	d.to = d.byShard[shard]
}

// The approximate memory for a row until it is accepted, and the number of rows
// for which memory is reserved at a time.
const (
	rowBytes   = 64
	labelBytes = 32
	rowChunk   = 1024
)

// lookEvery is the number of streams after which a decoder checks whether the
// request has ended. It also checks after rowChunk lines.
const lookEvery = 64

// add adds an entry to the stream. Without use_incoming_timestamp, its time is
// its number, see Component.date.
func (d *decoder) add(t int64, line string, meta []batch.Label) {
	if d.seen++; d.seen%rowChunk == 0 && d.ended() {
		d.err = errEnded
		return
	}
	if n := d.set.limits.LineLimit; n > 0 && d.seen > n {
		d.err = errLineLimit
		return
	}
	if d.reason != "" {
		d.drop(d.reason)
		return
	}
	if n := d.set.limits.MaxLineSize; n > 0 && len(line) > int(n) {
		d.drop("line_too_long")
		d.problems.Add("a line is over a limit: it has %d bytes, max_line_size is %d", len(line), n)
		return
	}
	if len(meta) > 0 && d.tooMuch(meta) {
		d.drop("structured_metadata_limit")
		return
	}
	need := int64(len(meta) * labelBytes)
	if d.rows++; d.rows > d.counted {
		d.counted += rowChunk
		need += rowChunk * rowBytes
	}
	if need > 0 {
		if !d.reserve(need) {
			d.err = errBusy
			return
		}
	}
	if !d.incoming {
		t = int64(d.rows)
	}
	b := d.to
	if meta != nil && b.Meta == nil {
		b.Meta = make([][]batch.Label, len(b.Line), len(b.Line)+1)
	}
	if b.Meta != nil {
		b.Meta = append(b.Meta, meta)
	}
	b.Stream, b.T, b.Line = append(b.Stream, d.stream), append(b.T, t), append(b.Line, line)
}

func (d *decoder) drop(reason string) {
	if d.dropped == nil {
		d.dropped = map[string]int{}
	}
	d.dropped[reason]++
}

// tooMuch reports whether the metadata of a line exceeds a limit, and records
// this.
func (d *decoder) tooMuch(meta []batch.Label) bool {
	l := &d.set.limits
	if n := l.MetadataLimit; n > 0 && len(meta) > n {
		d.problems.Add("a line is over a limit: it has structured metadata of %d names, structured_metadata_limit is %d", len(meta), n)
		return true
	}
	size := 0
	for _, m := range meta {
		size += len(m.Name) + len(m.Value)
	}
	if n := l.MaxMetadataSize; n > 0 && size > int(n) {
		d.problems.Add("a line is over a limit: its structured metadata has %d bytes, max_structured_metadata_size is %d", size, n)
		return true
	}
	return false
}

// text returns b as a string without copying it. b is an arena that is not
// written to any more.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// unpack decodes the body according to its encodings: that of the header and, for
// a push request in protobuf, snappy. own is true if the result does not alias
// body.
func (c *Component) unpack(body []byte, from *http.Request, encoding string, snappied bool, a *Arguments, res *intake.Reservation) (out []byte, own bool, e *intake.Refusal) {
	limit := int64(a.MaxSize)
	var r io.Reader
	var err error
	switch encoding {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		if len(body) > 1 && body[0] == 0x78 && (int(body[0])<<8|int(body[1]))%31 == 0 { // as defined in RFC 9110
			r, err = zlib.NewReader(bytes.NewReader(body))
		} else { // as in Loki
			r = flate.NewReader(bytes.NewReader(body))
		}
	}
	if err != nil {
		return nil, false, undecompressed(err)
	}
	out = body
	if r != nil {
		own = true
		if out, e = c.inflate(r, from, limit, a, res); e != nil {
			return nil, false, e
		}
	}
	if !snappied {
		return out, own, nil
	}
	n, err := snappy.DecodedLen(out)
	if err != nil {
		return nil, false, undecompressed(err)
	}
	if int64(n) > limit {
		return nil, false, tooLarge(limit)
	}
	if !res.Reserve(int64(n)) {
		return nil, false, c.overBudget(a, res)
	}
	if out, err = snappy.Decode(nil, out); err != nil {
		return nil, false, undecompressed(err)
	}
	return out, true, nil
}

func undecompressed(err error) *intake.Refusal {
	return intake.Refuse(http.StatusBadRequest, intake.Invalid, "cannot decompress the body: %w", err)
}

func tooLarge(limit int64) *intake.Refusal {
	return intake.Refuse(http.StatusRequestEntityTooLarge, intake.TooLarge, "the decompressed body has more bytes than max_send_message_size, which is %d", limit)
}

// inflate reads r to its end.
func (c *Component) inflate(r io.Reader, from *http.Request, limit int64, a *Arguments, res *intake.Reservation) ([]byte, *intake.Refusal) {
	var out []byte
	for {
		if len(out) == cap(out) {
			grown := max(64<<10, 2*cap(out))
			if !res.Reserve(int64(grown - cap(out))) {
				return nil, c.overBudget(a, res)
			}
			out = append(make([]byte, 0, grown), out...)
		}
		if e := c.desk.Ended(from); e != nil {
			return nil, e
		}
		n, err := r.Read(out[len(out):min(cap(out), len(out)+64<<10)])
		out = out[:len(out)+n]
		switch {
		case int64(len(out)) > limit:
			return nil, tooLarge(limit)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, undecompressed(err)
		}
	}
}
