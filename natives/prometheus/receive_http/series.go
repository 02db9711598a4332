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

// shards divide the known series, so that requests do not wait for each other.
const shards = 16

// known are the series that were received, by their labels.
type known struct {
	shards [shards]*batch.Interner

	mu          sync.Mutex
	families    map[string]*batch.Metadata // of remote write 1.0
	familyBytes int                        // of their texts
}

func newKnown() *known {
	k := &known{families: map[string]*batch.Metadata{}}
	for i := range k.shards {
		k.shards[i] = batch.NewInterner(ttl)
	}
	return k
}

func (k *known) shard(hash uint64) *batch.Interner { return k.shards[hash>>60%shards] }

// lookup returns the series with the labels as batch.Series.AppendWire writes them,
// nil when it is not known.
func (k *known) lookup(wire []byte, now time.Time) *batch.Series {
	hash := batch.Hash(wire)
	return k.shard(hash).Lookup(hash, wire, now)
}

// intern returns the series with the sorted labels.
func (k *known) intern(sorted []batch.Label, now time.Time) *batch.Series {
	s := k.shard(batch.Hash(batch.AppendLabels(nil, sorted))).Intern(sorted, nil, now)
	if s.Meta() == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if m := k.family(s.Name()); m != nil {
			s.SetMeta(m)
		}
	}
	return s
}

func (k *known) len() (n int) {
	for _, in := range k.shards {
		n += in.Len()
	}
	return n
}

func (k *known) clear() {
	for _, in := range k.shards {
		in.Clear()
	}
}

// maxFamilies and maxFamilyBytes bound the metadata that is kept of families.
const (
	maxFamilies    = 50_000
	maxFamilyBytes = 32 << 20
)

// learn keeps the metadata of families, which remote write 1.0 sends beside
// the series, and gives it to the series that are known.
func (k *known) learn(families map[string]batch.Metadata) {
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
	if !changed {
		return
	}
	for _, in := range k.shards {
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
			return nil, bad(fmt.Errorf("label %s is there twice", l.Name))
		}
		named = named || l.Name == batch.NameLabel
	}
	if !named {
		return nil, bad(errNoName)
	}
	ls = slices.DeleteFunc(ls, func(l batch.Label) bool { return l.Value == "" })
	return ls, lim.check(ls)
}

// check looks at the limits of labels.
func (lim *Limits) check(ls []batch.Label) *badSeries {
	bad := func(format string, args ...any) *badSeries {
		return &badSeries{reason: "label_limit", refuse: true, err: fmt.Errorf("series %s is over a limit: "+format, append([]any{show(ls)}, args...)...)}
	}
	if n := lim.LabelLimit; n > 0 && len(ls) > n {
		return bad("it has %d labels, label_limit is %d", len(ls), n)
	}
	for _, l := range ls {
		if n := lim.LabelNameLengthLimit; n > 0 && len(l.Name) > n {
			return bad("a label name has %d bytes, label_name_length_limit is %d", len(l.Name), n)
		}
		if n := lim.LabelValueLengthLimit; n > 0 && len(l.Value) > n {
			return bad("the value of label %s has %d bytes, label_value_length_limit is %d", show([]batch.Label{{Name: l.Name}}), len(l.Value), n)
		}
	}
	return nil
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
