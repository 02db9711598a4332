package node

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// Difference is how the results of a new version differ from those of the running
// version on recent input. Lists of examples have at most maxExamples elements.
type Difference struct {
	Running string `json:"running"` // version
	Version string `json:"version"` // new
	Refused string `json:"refused,omitempty"`
	// Note says why not all recent input was compared.
	Note string `json:"note,omitempty"`

	Batches int `json:"batches"`
	Records int `json:"records"`
	// Skipped counts records that were not compared because the new version made a
	// request, or ran a program, that the running version did not.
	Skipped  int    `json:"skipped"`
	External string `json:"external,omitempty"` // the first such request

	Kept     int `json:"kept"`     // records that both versions send unchanged, or drop
	Changed  int `json:"changed"`  // records that both versions send differently
	Dropped  int `json:"dropped"`  // records that only the new version drops
	Restored int `json:"restored"` // records that only the running version drops

	EmittedBefore int `json:"emitted_before"` // by ctx.emit
	EmittedAfter  int `json:"emitted_after"`
	// EmittedChanged counts emitted records in whose place the new version emits
	// other records, EmittedMissing those in whose place it emits nothing.
	EmittedChanged int `json:"emitted_changed"`
	EmittedMissing int `json:"emitted_missing"`

	ChangedExamples []Change `json:"changed_examples,omitempty"`
	DroppedExamples []string `json:"dropped_examples,omitempty"`

	NewSeries  Names `json:"new_series"`  // series and streams that only the new version sends
	GoneSeries Names `json:"gone_series"` // that only the running version sends
	NewLabels  Names `json:"new_labels"`
	GoneLabels Names `json:"gone_labels"`

	NanosBefore  int64  `json:"ns_per_record_before"`
	NanosAfter   int64  `json:"ns_per_record_after"`
	ErrorsBefore int    `json:"errors_before"`
	ErrorsAfter  int    `json:"errors_after"`
	FirstError   string `json:"first_error,omitempty"` // of the new version
}

// Change is a record as both versions send it.
type Change struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Names are a number of series or labels, with examples.
type Names struct {
	Count    int      `json:"count"`
	Examples []string `json:"examples,omitempty"`
}

// maxExamples bounds the examples of each kind in a Difference, and maxExample
// the size of one, in bytes.
const (
	maxExamples = 5
	maxExample  = 500
)

// attrs describes the difference for the log.
func (d *Difference) attrs() []any {
	attrs := []any{"version", component.ShortVersion(d.Version), "running", component.ShortVersion(d.Running), "records", d.Records, "changed", d.Changed, "dropped", d.Dropped, "restored", d.Restored,
		"new_series", d.NewSeries.Count, "gone_series", d.GoneSeries.Count, "errors", d.ErrorsAfter,
		"ns_per_record_before", d.NanosBefore, "ns_per_record_after", d.NanosAfter}
	if d.Skipped > 0 {
		attrs = append(attrs, "skipped", d.Skipped)
	}
	if d.Note != "" {
		attrs = append(attrs, "note", d.Note)
	}
	return attrs
}

// String describes the difference for people, on several lines.
func (d *Difference) String() string {
	if d.Records == 0 && d.Note != "" {
		return "no comparison: " + d.Note
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("records: %d; unchanged: %d, changed: %d, dropped: %d, no longer dropped: %d", d.Records, d.Kept, d.Changed, d.Dropped, d.Restored)
	for _, c := range d.ChangedExamples {
		line("  changed: %s\n       to: %s", c.Before, c.After)
	}
	for _, text := range d.DroppedExamples {
		line("  dropped: %s", text)
	}
	if d.EmittedBefore+d.EmittedAfter > 0 {
		line("emitted records: %d → %d; changed: %d, missing: %d", d.EmittedBefore, d.EmittedAfter, d.EmittedChanged, d.EmittedMissing)
	}
	for _, n := range []struct {
		what string
		Names
	}{{"new series", d.NewSeries}, {"series that end", d.GoneSeries}, {"new labels", d.NewLabels}, {"labels that disappear", d.GoneLabels}} {
		if n.Count > 0 {
			examples := n.Examples
			if n.Count > len(examples) {
				examples = append(slices.Clone(examples), "…")
			}
			line("%s: %d (%s)", n.what, n.Count, strings.Join(examples, ", "))
		}
	}
	line("time per record: %d ns → %d ns", d.NanosBefore, d.NanosAfter)
	if d.ErrorsBefore+d.ErrorsAfter > 0 {
		line("errors: %d → %d", d.ErrorsBefore, d.ErrorsAfter)
	}
	if d.Note != "" {
		line("incomplete: %s", d.Note)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// comparison compares the results of two versions for the same batches.
type comparison struct {
	d             *Difference
	limits        block.Shadow
	before, after *rehearsal
	// sent are the series and streams that each version sends, by hash.
	sentBefore, sentAfter map[uint64]*batch.Series
}

// compare has both versions process a batch. The error is why one of them has no VM.
func (x *comparison) compare(ctx context.Context, b payload) error {
	was, is := x.before.c.kind.(*transform), x.after.c.kind.(*transform)
	switch {
	case x.after.c.script.Definition.Accepts()&b.Signal() == 0:
		return nil // the config does not send it any more
	case b.Logs != nil:
		return compareBatch(ctx, x, was.logs, is.logs, b.Logs)
	}
	return compareBatch(ctx, x, was.metrics, is.metrics, b.Metrics)
}

func compareBatch[B records](ctx context.Context, x *comparison, was, is pipeline[B], b B) error {
	x.before.outside.forget()
	x.after.outside.forget()
	old, err := was.rehearse(ctx, b, nil)
	if err != nil {
		return err
	}
	defer old.close()
	made, err := is.rehearse(ctx, b, nil)
	if err != nil {
		return err
	}
	defer made.close()
	d := x.d
	if external := x.after.outside.exceeds(x.before.outside); external != "" {
		d.Skipped += b.Len()
		d.External = cmp.Or(d.External, external)
		return nil
	}
	d.Batches++
	d.Records += b.Len()
	x.before.count(old.errors, old.took)
	x.after.count(made.errors, made.took)
	s := was.signal
	oldAll, newAll := s.payload(old.all), s.payload(made.all)
	i, j := 0, 0 // rows of these
	for row := range b.Len() {
		way, sent := s.window(old.k.w).WayOf(row)
		newWay, stillSent := s.window(made.k.w).WayOf(row)
		switch {
		case sent && stillSent && (way != newWay || !s.same(old.all, i, made.all, j)):
			d.Changed++
			if len(d.ChangedExamples) < maxExamples {
				d.ChangedExamples = append(d.ChangedExamples, Change{oldAll.example(i), newAll.example(j)})
			}
		case sent && !stillSent:
			d.Dropped++
			if len(d.DroppedExamples) < maxExamples {
				d.DroppedExamples = append(d.DroppedExamples, oldAll.example(i))
			}
		case stillSent && !sent:
			d.Restored++
		default:
			d.Kept++
		}
		if sent {
			i++
		}
		if stillSent {
			j++
		}
	}
	d.compareEmitted(oldAll.from(i), newAll.from(j))
	d.compareEmitted(old.other, made.other)
	for _, p := range []payload{oldAll, old.other} {
		x.sentBefore = p.addSeries(x.sentBefore)
	}
	for _, p := range []payload{newAll, made.other} {
		x.sentAfter = p.addSeries(x.sentAfter)
	}
	return nil
}

// count adds what a version reported for a batch.
func (r *rehearsal) count(errs []*scripting.Error, took time.Duration) {
	r.errors += len(errs)
	if r.first == nil && len(errs) > 0 {
		r.first = errs[0]
	}
	r.took += took
}

// compareEmitted compares what both versions emitted for one batch, in any order.
func (d *Difference) compareEmitted(old, made payload) {
	d.EmittedBefore += old.len()
	d.EmittedAfter += made.len()
	left := map[string]int{}
	for text := range old.lines() {
		left[text]++
	}
	more := 0
	for text := range made.lines() {
		if left[text] > 0 {
			left[text]--
		} else {
			more++
		}
	}
	missing := 0
	for _, n := range left {
		missing += n
	}
	d.EmittedChanged += min(missing, more)
	d.EmittedMissing += missing - min(missing, more)
}

// len returns the number of records, also of an empty payload.
func (b payload) len() int {
	if b.Metrics == nil && b.Logs == nil {
		return 0
	}
	return b.Len()
}

// from returns the rows from row on.
func (b payload) from(row int) payload {
	if b.Logs != nil {
		return payload{outbox.Batch{Logs: b.Logs.Select(func(i int) bool { return i >= row })}}
	}
	return payload{outbox.Batch{Metrics: b.Metrics.Select(func(i int) bool { return i >= row })}}
}

// lines yields the text of each record.
func (b payload) lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range b.len() {
			if !yield(string(b.rows([]int{i}).text())) {
				return
			}
		}
	}
}

// example returns a row in text form without metadata, cut to what fits a message.
func (b payload) example(row int) string {
	text := string(b.rows([]int{row}).text())
	for b.Metrics != nil && strings.HasPrefix(text, "# ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return shortExample(strings.TrimSpace(text))
}

func shortExample(text string) string {
	if len(text) <= maxExample {
		return text
	}
	return strings.ToValidUTF8(text[:maxExample], "") + "…"
}

// addSeries adds the series or streams of a batch to those that are known by hash.
func (b payload) addSeries(known map[uint64]*batch.Series) map[uint64]*batch.Series {
	if known == nil {
		known = map[uint64]*batch.Series{}
	}
	if b.len() > 0 {
		for _, s := range b.column() {
			known[s.Hash()] = s
		}
	}
	return known
}

// Reasons to end the comparison early: the verdict is clear.
const clearErrors = 20

// refuses reports whether it is clear that the new version is refused.
func (x *comparison) refuses() bool {
	return x.after.errors >= x.before.errors+clearErrors || len(x.sentAfter) > len(x.sentBefore)+x.limits.MaxNewSeries
}

// verdict completes the difference and returns why the new version must not take
// over.
func (x *comparison) verdict(s *Script) error {
	d := x.d
	d.NewSeries, d.NewLabels = missingFrom(x.sentAfter, x.sentBefore)
	d.GoneSeries, d.GoneLabels = missingFrom(x.sentBefore, x.sentAfter)
	d.ErrorsBefore, d.ErrorsAfter = x.before.errors, x.after.errors
	if x.after.first != nil {
		d.FirstError = component.Shorten(x.after.first.Error())
	}
	if d.Skipped > 0 {
		d.Note = fmt.Sprintf("%d records were not compared: the running version has no recent answer that the new version needs for them: %s", d.Skipped, d.External)
	}
	if d.Records == 0 {
		return nil
	}
	before, after := x.before.took/time.Duration(d.Records), x.after.took/time.Duration(d.Records)
	d.NanosBefore, d.NanosAfter = before.Nanoseconds(), after.Nanoseconds()
	base := float64(d.Records + d.EmittedBefore)
	drops := float64(d.Dropped+d.EmittedMissing-d.Restored) / base
	changes := float64(d.Changed+d.EmittedChanged) / base
	l := x.limits
	refuse := func(limit, format string, args ...any) error {
		return s.File.Error(0, scripting.HookLoad, fmt.Errorf(format+" (script.shadow."+limit+")", args...))
	}
	switch {
	case d.ErrorsAfter > d.ErrorsBefore:
		e := *x.after.first
		e.Err = fmt.Errorf("%w (errors on recent input: new version %d, running version %d)", e.Err, d.ErrorsAfter, d.ErrorsBefore)
		return &e
	case drops > l.MaxDropIncrease:
		return refuse("max_drop_increase", "the new version drops %d of %d recent records that the running version keeps, and keeps %d that it drops; the limit is an increase of %s", d.Dropped+d.EmittedMissing, d.Records+d.EmittedBefore, d.Restored, percent(l.MaxDropIncrease))
	case changes > l.MaxChangedRecords:
		return refuse("max_changed_records", "the new version changes %d of %d recent records; the limit is %s", d.Changed+d.EmittedChanged, d.Records+d.EmittedBefore, percent(l.MaxChangedRecords))
	case d.NewSeries.Count > l.MaxNewSeries:
		return refuse("max_new_series", "the new version sends %d series that the running version does not send, such as %s; the limit is %d", d.NewSeries.Count, d.NewSeries.Examples[0], l.MaxNewSeries)
	case d.Records >= minTimed && after > l.MaxTimePerRecord && (before <= l.MaxTimePerRecord || after > 2*before):
		return refuse("max_time_per_record", "the new version takes %s for a record, the running version %s; the limit is %s", after, before, l.MaxTimePerRecord)
	}
	return nil
}

// minTimed is the number of records from which on the time per record counts: the time of a
// few calls depends on what else the machine does.
const minTimed = 100

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + " %" }

// missingFrom returns the series of a that are not in b, and the names of labels that
// only series of a have.
func missingFrom(a, b map[uint64]*batch.Series) (series, labels Names) {
	names := labelNames(b)
	for hash, s := range a {
		if _, ok := b[hash]; ok {
			continue
		}
		series.Count++
		series.addExample(s.String())
	}
	for name := range labelNames(a) {
		if !names[name] {
			labels.Count++
			labels.addExample(name)
		}
	}
	return series, labels
}

func labelNames(of map[uint64]*batch.Series) map[string]bool {
	names := map[string]bool{}
	for _, s := range of {
		for name := range s.Labels() {
			if name != batch.NameLabel {
				names[name] = true
			}
		}
	}
	return names
}

// addExample keeps the first examples in their order.
func (n *Names) addExample(text string) {
	i, _ := slices.BinarySearch(n.Examples, text)
	if i < maxExamples {
		n.Examples = slices.Insert(n.Examples, i, text)
		n.Examples = n.Examples[:min(len(n.Examples), maxExamples)]
	}
}
