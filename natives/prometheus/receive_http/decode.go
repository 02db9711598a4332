package receivehttp

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/intake"
	"github.com/weir-run/weir/engine/wire"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// decoder decodes the body of a request into rows. It is scratch memory: reset it
// for each body. The result does not alias the body.
//
// A body that is not a valid message or exceeds sample_limit is refused as a
// whole. An error in a series rejects only that series; it is counted in dropped
// and named in problems.
type decoder struct {
	known   *known
	held    *held
	limits  *Limits
	meta    bool             // append_metadata
	typed   bool             // enable_type_and_unit_labels
	reserve func(int64) bool // reserves memory, in bytes
	ended   func() bool      // reports whether the request has ended
	now     time.Time

	compressed []byte
	body       []byte

	rows
	v2        bool
	labels    []batch.Label
	region    []byte   // the label fields of a series, if they are not contiguous
	symbols   [][]byte // remote write 2.0
	refs      []uint32
	metas     map[metadataV2]*batch.Metadata // metadata that series of the request have
	texts     map[uint32]string              // symbols used in metas
	histSeen  [][]byte                       // of the current series
	exSeen    [][]byte
	orphans   []orphan
	parts     int   // number of series and metadata messages that were read
	counted   int   // number of rows for which memory was reserved
	extra     int64 // memory reserved for histograms
	expanded  int64 // size of the labels to which references of 2.0 expand
	dropped   map[string]int
	exDropped map[string]int
	reduced   int // number of histograms whose resolution was reduced
	problems  intake.Problems
	written   written
}

// written is the content of the response headers of remote write 2.0.
type written struct{ samples, histograms, exemplars int }

// orphan is an exemplar that was sent without a sample.
type orphan struct {
	series *batch.Series
	e      batch.Exemplar
}

func (d *decoder) reset() {
	d.rows.reset()
	clear(d.symbols)
	clear(d.histSeen[:cap(d.histSeen)])
	clear(d.exSeen[:cap(d.exSeen)])
	clear(d.orphans)
	clear(d.labels)
	d.symbols, d.orphans = d.symbols[:0], d.orphans[:0]
	d.dropped, d.exDropped, d.metas, d.texts = nil, nil, nil, nil
	d.expanded = 0
	d.parts, d.counted, d.extra, d.reduced, d.problems, d.written = 0, 0, 0, 0, intake.Problems{}, written{}
}

// errBusy means that there is currently no memory for the request.
var errBusy = errors.New("too much is in flight")

// errEnded means that the request has ended.
var errEnded = errors.New("the request has ended")

// errSampleLimit means that a request exceeds sample_limit.
var errSampleLimit = errors.New("the request has more samples than sample_limit")

// rowBytes is the approximate memory for a row until it is sent, and rowChunk is
// the number of rows for which memory is reserved at a time.
const (
	rowBytes = 64
	rowChunk = 4096
)

// room reserves memory for one more row.
func (d *decoder) room() error {
	n := len(d.t)
	if d.limits.SampleLimit > 0 && n >= d.limits.SampleLimit {
		return fmt.Errorf("%w (%d)", errSampleLimit, d.limits.SampleLimit)
	}
	if n >= d.counted {
		if !d.reserve(rowChunk * rowBytes) {
			return errBusy
		}
		d.counted += rowChunk
		return d.goOn()
	}
	return nil
}

// lookEvery is the number of series after which a decoder checks whether the
// request has ended.
const lookEvery = 64

// goOn returns errEnded if the request has ended.
func (d *decoder) goOn() error {
	if d.ended() {
		return errEnded
	}
	return nil
}

// next is called before each series and each metadata.
func (d *decoder) next() error {
	if d.parts++; d.parts%lookEvery == 0 {
		return d.goOn()
	}
	return nil
}

// appendPart appends a part of the body to dst. Parts may be as short as two
// bytes.
func (d *decoder) appendPart(dst [][]byte, part []byte) ([][]byte, error) {
	if len(dst)%rowChunk == rowChunk-1 && !d.reserve(rowChunk*24) {
		return dst, errBusy
	}
	return append(dst, part), nil
}

// unpack reserves memory for a histogram. Its numbers take 8 bytes each, but may
// take only one in the body.
func (d *decoder) unpack(b []byte) error {
	n := int64(64 + 8*len(b))
	if !d.reserve(n) {
		return errBusy
	}
	d.extra += n
	return nil
}

// sample decodes a Sample message of either version into a row without a series.
//
//	Sample { double value = 1; int64 timestamp = 2; int64 start_timestamp = 3 }
func (d *decoder) sample(b []byte) error {
	if err := d.room(); err != nil {
		return err
	}
	var v float64
	var t, start int64
	c := wire.Read(b)
	for c.More() {
		num, typ := c.Field()
		switch num {
		case 1:
			c.Want(typ, wire.Fixed64)
			v = c.Double()
		case 2:
			c.Want(typ, wire.Varint)
			t = int64(c.Varint())
		case 3:
			if !d.v2 { // 1.0 does not have this field
				c.Skip(typ)
				break
			}
			c.Want(typ, wire.Varint)
			start = int64(c.Varint())
		default:
			c.Skip(typ)
		}
	}
	if err := c.Err("a sample"); err != nil {
		return err
	}
	if start != 0 {
		d.starts = append(d.starts, batch.Start{Row: len(d.t), T: start})
	}
	d.t, d.v = append(d.t, t), append(d.v, v)
	return nil
}

// histogram adds a row with a native histogram. If its series is not accepted, s
// is nil, and the histogram is not checked.
func (d *decoder) histogram(s *batch.Series, h batch.Histogram, t, start int64) error {
	if err := d.room(); err != nil {
		return err
	}
	h.Row = len(d.t)
	var sum float64
	if s != nil { // otherwise the row is dropped with the series
		reduced, err := valid.ReduceHistogram(&h)
		if err == nil {
			err = valid.CheckHistogram(&h)
		}
		if err != nil {
			d.drop(valid.HistogramReason(err), 1)
			d.problems.Add("a histogram of series %s cannot be accepted: %w", shown{s}, err)
			return nil
		}
		if reduced {
			d.reduced++
		}
		if h.Int != nil {
			sum = h.Int.Sum
		} else {
			sum = h.Float.Sum
		}
	}
	d.histograms = append(d.histograms, h)
	if start != 0 {
		d.starts = append(d.starts, batch.Start{Row: h.Row, T: start})
	}
	d.t, d.v = append(d.t, t), append(d.v, sum)
	return nil
}

// exemplar keeps an exemplar for the last row of the series, or for a later one.
// As in Prometheus, invalid exemplars are dropped without an error.
func (d *decoder) exemplar(s *batch.Series, e batch.Exemplar, has bool) {
	if s == nil {
		return
	}
	if reason := valid.CheckExemplar(e.Labels); reason != "" {
		d.dropExemplar(reason)
		return
	}
	sortLabels(e.Labels)
	e.Labels = slices.DeleteFunc(e.Labels, func(l batch.Label) bool { return l.Value == "" })
	d.written.exemplars++
	if !has {
		d.orphans = append(d.orphans, orphan{s, e})
		return
	}
	e.Row = len(d.t) - 1
	d.exemplars = append(d.exemplars, e)
}

// finish sets the series of the rows from from, or drops these rows.
func (d *decoder) finish(s *batch.Series, bad *badSeries, from int) {
	n := len(d.t) - from
	if s == nil {
		d.cut(from)
		d.drop(bad.reason, n)
		if bad.refuse {
			d.problems.Add("%w", bad)
		}
		return
	}
	for range n {
		d.series = append(d.series, s)
	}
	hs := 0
	for i := len(d.histograms) - 1; i >= 0 && d.histograms[i].Row >= from; i-- {
		hs++
	}
	d.written.histograms += hs
	d.written.samples += n - hs
}

// seriesOf returns the series for label fields in the format of remote write 1.0,
// or the reason why it is not accepted. The error concerns the whole message.
func (d *decoder) seriesOf(wire []byte) (*batch.Series, *badSeries, error) {
	if s := d.known.lookup(wire, d.now); s != nil {
		return s, nil, nil
	}
	if err := d.parseLabels(wire); err != nil {
		return nil, nil, err
	}
	return d.newSeries(d.labels)
}

// seriesBytes is the memory for a series in addition to its labels.
const seriesBytes = 350

// newSeries returns the series with those labels. It reorders them.
func (d *decoder) newSeries(ls []batch.Label) (*batch.Series, *badSeries, error) {
	ls, bad := normalize(ls, d.limits)
	if bad != nil {
		return nil, bad, nil
	}
	n := seriesBytes
	for _, l := range ls {
		n += len(l.Name) + len(l.Value)
	}
	if !d.reserve(int64(n)) { // a symbol of 2.0 may occur in every series
		return nil, nil, errBusy
	}
	if over := d.full(); over != nil {
		// It may be known with another order of labels.
		if s := d.known.lookup(batch.AppendLabels(nil, ls), d.now); s != nil {
			return s, nil, nil
		}
		return nil, &badSeries{reason: "series_limit", refuse: true, err: fmt.Errorf("series %s is over a limit: %w", show(ls), over)}, nil
	}
	return d.known.intern(ls, d.now), nil, nil
}

// full returns an error if no further series are allowed.
func (d *decoder) full() error {
	most, bytes := d.limits.SeriesLimit, int(d.limits.MaxSeriesSize)
	if most == 0 && bytes == 0 {
		return nil
	}
	switch n, b := d.known.size(); {
	case most > 0 && n >= most:
		return fmt.Errorf("as many series as series_limit (%d) are known", most)
	case bytes > 0 && b >= bytes:
		return fmt.Errorf("the series that are known take as many bytes as max_series_size (%d)", bytes)
	}
	return nil
}

// drop counts rows that are not accepted.
func (d *decoder) drop(reason string, n int) {
	if d.dropped == nil {
		d.dropped = map[string]int{}
	}
	d.dropped[reason] += n
}

func (d *decoder) dropExemplar(reason string) {
	if d.exDropped == nil {
		d.exDropped = map[string]int{}
	}
	d.exDropped[reason]++
}
