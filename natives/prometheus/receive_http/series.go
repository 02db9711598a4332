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

// ttl is how long a series is known after its last sample. A handle that comes
// again is only work for those downstream that remember what they made of it.
const ttl = 15 * time.Minute

// partitions divide the known series, so that requests do not wait for each other.
const partitions = 16

// known are the series that were received, by their labels.
type known struct {
	partitions [partitions]*batch.Interner

	mu          sync.Mutex
	families    map[string]*batch.Metadata // of remote write 1.0
	familyBytes int                        // of their texts
	told        time.Time                  // when series were last given what is known of their families
	owed        bool                       // it has changed since
}

func newKnown() *known {
	k := &known{families: map[string]*batch.Metadata{}}
	for i := range k.partitions {
		k.partitions[i] = batch.NewInterner(ttl)
	}
	return k
}

func (k *known) partition(hash uint64) *batch.Interner { return k.partitions[hash>>60%partitions] }

// lookup returns the series with the labels as batch.Series.AppendWire writes them,
// nil when it is not known.
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

// size returns how many series are known and about how many bytes they take.
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

// maxFamilies and maxFamilyBytes bound the metadata that is kept of families.
const (
	maxFamilies    = 50_000
	maxFamilyBytes = 32 << 20
)

// tellEvery is how often known series are given what changed of their families: it
// takes a look at all of them, and a request that changes something may be small.
const tellEvery = time.Second

// setMetadata keeps the metadata of families, which remote write 1.0 sends beside
// the series, and gives it to the series that are known, at the latest when tell is
// called tellEvery later.
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

// sendDeferred gives series what is owed to them.
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

// family returns the metadata of the family that a metric belongs to. mu is
// held.
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

// badSeries is why a series is not accepted.
type badSeries struct {
	reason string // of metrics
	err    error
	refuse bool // to be told to the client of remote write 1.0
}

func (e *badSeries) Error() string { return e.err.Error() }

var (
	errNoName   = errors.New("it has no metric name")
	errNameUTF8 = errors.New("a name is empty or not valid UTF-8")
	errUTF8     = errors.New("a value is not valid UTF-8")
)

// normalize sorts labels and drops empty ones, after Prometheus's checks in
// Prometheus's order: a name and valid UTF-8, nothing twice.
func normalize(ls []batch.Label, lim *Limits) ([]batch.Label, *badSeries) {
	if n := lim.LabelLimit; n > 0 && len(ls) > n { // before they are sorted: they may be millions
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

// overLimit says that a series is over a limit of labels.
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

// check looks at the lengths of labels.
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

// shown shows a series in a message, if that is needed.
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

// show returns labels for a message: short, and valid UTF-8.
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
