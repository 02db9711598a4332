package receivehttp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/batch"
)

// ttl is how long a series is known after its last sample. If it returns later
// with a new handle, downstream components only have to compute their cached
// results again.
const ttl = 15 * time.Minute

// partitions is the number of partitions of the known series, so that requests do
// not wait for each other.
const partitions = 16

// known are the series that were received, by their labels.
type known struct {
	partitions [partitions]*batch.Interner

	mu          sync.Mutex
	families    map[string]*batch.Metadata // metadata of remote write 1.0
	familyBytes int                        // size of its texts
	told        time.Time                  // the last time at which series received changed metadata
	owed        bool                       // the metadata has changed since
}

func newKnown() *known {
	k := &known{families: map[string]*batch.Metadata{}}
	for i := range k.partitions {
		k.partitions[i] = batch.NewInterner(ttl)
	}
	return k
}

func (k *known) partition(hash uint64) *batch.Interner { return k.partitions[hash>>60%partitions] }

// lookup returns the series with labels encoded as by batch.Series.AppendWire, or
// nil if it is unknown.
func (k *known) lookup(wire []byte, now time.Time) *batch.Series {
	hash := batch.Hash(wire)
	return k.partition(hash).Lookup(hash, wire, now)
}

// intern returns the series with the sorted labels.
func (k *known) intern(sorted []batch.Label, now time.Time) *batch.Series {
	s := k.partition(batch.Hash(batch.AppendLabels(nil, sorted))).Intern(sorted, nil, now)
	if s.Meta() == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if m := k.family(s.Name()); m != nil {
			s.SetMeta(m)
		}
	}
	return s
}

func (k *known) len() int {
	n, _ := k.size()
	return n
}

// size returns the number of known series and their approximate size in bytes.
func (k *known) size() (n, bytes int) {
	for _, in := range k.partitions {
		m, b := in.Size()
		n, bytes = n+m, bytes+b
	}
	return n, bytes + n*seriesBytes
}

func (k *known) clear() {
	for _, in := range k.partitions {
		in.Clear()
	}
}

// maxFamilies and maxFamilyBytes limit the stored metadata of families.
const (
	maxFamilies    = 50_000
	maxFamilyBytes = 32 << 20
)

// tellEvery is the minimum interval at which known series receive changed
// metadata. It requires a scan of all series, and small requests could cause it.
const tellEvery = time.Second

// setMetadata stores the metadata of families, which remote write 1.0 sends
// separately from the series. The known series receive it immediately, or with
// the next call of sendDeferred after tellEvery.
func (k *known) setMetadata(families map[string]batch.Metadata, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := false
	for name, m := range families {
		old, n := k.families[name], len(m.Help)+len(m.Unit)
		switch {
		case old == nil:
			n += len(name)
		case *old == m:
			continue
		default:
			n -= len(old.Help) + len(old.Unit)
		}
		if old == nil && len(k.families) >= maxFamilies || k.familyBytes+n > maxFamilyBytes {
			continue
		}
		k.familyBytes += n
		k.families[name] = &m
		changed = true
	}
	k.owed = k.owed || changed
	k.tellLocked(now)
}

// sendDeferred gives series the metadata that is pending.
func (k *known) sendDeferred(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tellLocked(now)
}

func (k *known) tellLocked(now time.Time) {
	if since := now.Sub(k.told); !k.owed || since >= 0 && since < tellEvery {
		return
	}
	k.owed, k.told = false, now
	for _, in := range k.partitions {
		in.Each(func(s *batch.Series) {
			if m := k.family(s.Name()); m != nil && m != s.Meta() {
				s.SetMeta(m)
			}
		})
	}
}

// family returns the metadata of the family to which a metric belongs. The caller
// holds mu.
func (k *known) family(metric string) *batch.Metadata {
	if len(k.families) == 0 {
		return nil
	}
	if m := k.families[metric]; m != nil {
		return m
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_total", "_created", "_info"} {
		if name, ok := strings.CutSuffix(metric, suffix); ok {
			return k.families[name]
		}
	}
	return nil
}

// badSeries is the reason why a series is not accepted.
type badSeries struct {
	reason string // the label value for metrics
	err    error
	refuse bool // the client of remote write 1.0 gets an error
}

func (e *badSeries) Error() string { return e.err.Error() }

var (
	errNoName   = errors.New("it has no metric name")
	errNameUTF8 = errors.New("a name is empty or not valid UTF-8")
	errUTF8     = errors.New("a value is not valid UTF-8")
)

// normalize sorts labels and removes empty ones, after Prometheus's checks in
// Prometheus's order: there must be a name, valid UTF-8 and no duplicates.
func normalize(ls []batch.Label, lim *Limits) ([]batch.Label, *badSeries) {
	if n := lim.LabelLimit; n > 0 && len(ls) > n { // before sorting, because there may be millions
		some := 0
		for _, l := range ls {
			if l.Value != "" {
				some++
			}
		}
		if some > n {
			return nil, lim.tooMany(ls, some)
		}
	}
	sortLabels(ls)
	bad := func(err error) *badSeries {
		return &badSeries{reason: "invalid_labels", err: fmt.Errorf("series %s cannot be accepted: %w", show(ls), err)}
	}
	named := false
	for i, l := range ls {
		switch {
		case l.Name == "" || !utf8.ValidString(l.Name):
			return nil, bad(errNameUTF8)
		case l.Name == batch.NameLabel && !model.UTF8Validation.IsValidMetricName(l.Value):
			return nil, bad(errNameUTF8)
		case !utf8.ValidString(l.Value):
			return nil, bad(errUTF8)
		case i > 0 && ls[i-1].Name == l.Name:
			return nil, bad(fmt.Errorf("label %s appears twice", l.Name))
		}
		named = named || l.Name == batch.NameLabel
	}
	if !named {
		return nil, bad(errNoName)
	}
	ls = slices.DeleteFunc(ls, func(l batch.Label) bool { return l.Value == "" })
	return ls, lim.check(ls)
}

// overLimit returns the error for a series that exceeds a limit of labels.
func overLimit(ls []batch.Label, format string, args ...any) *badSeries {
	return &badSeries{reason: "label_limit", refuse: true, err: fmt.Errorf("series %s is over a limit: "+format, append([]any{show(ls)}, args...)...)}
}

func (lim *Limits) tooMany(ls []batch.Label, n int) *badSeries {
	return overLimit(ls, "it has %d labels, label_limit is %d", n, lim.LabelLimit)
}

// exceeded reports whether a label is too long.
func (lim *Limits) exceeded(name, value int) bool {
	return lim.LabelNameLengthLimit > 0 && name > lim.LabelNameLengthLimit || lim.LabelValueLengthLimit > 0 && value > lim.LabelValueLengthLimit
}

// check checks the lengths of labels.
func (lim *Limits) check(ls []batch.Label) *badSeries {
	for _, l := range ls {
		if n := lim.LabelNameLengthLimit; n > 0 && len(l.Name) > n {
			return overLimit(ls, "a label name has %d bytes, label_name_length_limit is %d", len(l.Name), n)
		}
		if n := lim.LabelValueLengthLimit; n > 0 && len(l.Value) > n {
			return overLimit(ls, "the value of label %s has %d bytes, label_value_length_limit is %d", show([]batch.Label{{Name: l.Name}}), len(l.Value), n)
		}
	}
	return nil
}

// shown formats a series for a message only if it is needed.
type shown struct{ s *batch.Series }

func (s shown) String() string {
	if s.s == nil {
		return "that is not accepted"
	}
	if s.s.WireSize() < 300 {
		return s.s.String()
	}
	return show(s.s.AppendLabels(nil))
}

// show formats labels for a message: short, and in valid UTF-8.
func show(ls []batch.Label) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, l := range ls {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.60q=%.60q", l.Name, l.Value)
		if b.Len() > 300 {
			b.WriteString(", …")
			break
		}
	}
	b.WriteByte('}')
	return b.String()
}
