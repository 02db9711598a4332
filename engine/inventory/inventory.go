// Package inventory copies labels from targets to series or streams that match
// one of them.
//
// It is not a component. Matching is done once per handle, and again when the
// targets change: a series whose target does not change keeps its handle.
package inventory

import (
	"maps"
	"reflect"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// Spec specifies which labels are copied to which series.
type Spec struct {
	// Targets are label sets. If several match, the last one counts.
	Targets []map[string]string
	// Match contains the labels that must be equal and not empty: the target's as
	// keys, the series' as values.
	Match map[string]string
	// Copy contains the names of the labels to copy; empty means all.
	Copy []string
	// KeepForEmpty keeps a label in Copy that is empty on the target; otherwise,
	// it is removed.
	KeepForEmpty bool
}

// labelsAre reports whether both use the same labels, for any targets.
func (s *Spec) labelsAre(o *Spec) bool {
	return maps.Equal(s.Match, o.Match) && slices.Equal(s.Copy, o.Copy) && s.KeepForEmpty == o.KeepForEmpty
}

// copied returns the labels of a target that are copied.
func (s *Spec) copied(target map[string]string) map[string]string {
	if len(s.Copy) == 0 {
		return target
	}
	some := make(map[string]string, len(s.Copy))
	for _, name := range s.Copy {
		if value, ok := target[name]; ok && !(s.KeepForEmpty && value == "") {
			some[name] = value
		}
	}
	return some
}

// Rules apply a Spec. All methods are safe for concurrent use.
type Rules struct {
	spec   Spec
	table  *table
	shared bool                         // the table now belongs to newer rules
	number uint64                       // among the rules with this table
	from   []string                     // labels of a series, in the order of the key
	copied map[string]map[string]string // labels to copy, by key
}

// New returns the rules of s, which must not be modified any more. They share
// the results of before, which may be nil, if only the targets differ.
func New(s Spec, before *Rules) *Rules {
	r := &Rules{spec: s, copied: make(map[string]map[string]string, len(s.Targets))}
	if before != nil && before.spec.labelsAre(&s) {
		r.table, r.number = before.table, before.number+1
		before.shared = true
	} else {
		r.table = newTable()
	}
	of := slices.Sorted(maps.Keys(s.Match))
	for _, label := range of {
		r.from = append(r.from, s.Match[label])
	}
	for _, t := range s.Targets {
		if k, ok := appendKey(nil, of, func(label string) string { return t[label] }); ok {
			r.copied[string(k)] = s.copied(t)
		}
	}
	return r
}

// Same reports whether New(s) would return equal rules.
func (r *Rules) Same(s Spec) bool {
	return r.spec.labelsAre(&s) && reflect.DeepEqual(r.spec.Targets, s.Targets)
}

// DebugInfo returns the number of targets that can match.
func (r *Rules) DebugInfo() any {
	return struct {
		Targets int `json:"targets"`
	}{len(r.copied)}
}

// Apply returns b with the labels of the targets that match.
func (r *Rules) Apply(b *batch.Metrics) *batch.Metrics { return r.table.apply(b, r.number, r.labels) }

// ApplyLogs is like Apply, for a batch of log lines.
func (r *Rules) ApplyLogs(b *batch.Logs) *batch.Logs {
	return r.table.change(b.Stream, r.number, r.labels).ApplyLogs(b)
}

// Sweep removes released series.
func (r *Rules) Sweep() {
	if !r.shared {
		r.table.removeExpired()
	}
}

// Close releases all derived handles.
func (r *Rules) Close() {
	if !r.shared {
		r.table.close()
	}
}

// labels returns the labels that are copied to s.
func (r *Rules) labels(s *batch.Series) map[string]string {
	var buf [128]byte // most keys fit, so a look-up allocates nothing
	k, ok := appendKey(buf[:0], r.from, s.Label)
	if !ok {
		return nil
	}
	return r.copied[string(k)]
}

// appendKey joins the values of labels; ok is false if one of them is empty.
func appendKey(dst []byte, labels []string, value func(string) string) (k []byte, ok bool) {
	for _, l := range labels {
		v := value(l)
		if v == "" {
			return nil, false
		}
		dst = append(append(dst, v...), 0xff) // in no UTF-8 text
	}
	return dst, true
}
