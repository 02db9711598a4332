package scripttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Change is a record that the script changed.
type Change struct {
	Before string // in text form
	Fields []FieldChange
}

// FieldChange is how a part of a record differs. Before or After is empty if the record
// did not have the part, or no longer has it.
type FieldChange struct{ Name, Before, After string }

// trialRecord is a sample or a log line of a trial.
type trialRecord struct {
	text   string  // in text form, in a line
	fields []field // what a record consists of, in order
	series string  // or stream
	name   string  // of the metric; "" for a log line
	labels string
	rest   string // the value, or the line
	route  string // the output that it was routed to; "" for forward_to
}

// field is a part of a record.
type field struct {
	name, value string
	meta        bool // it does not count when records are paired
}

// trialRecords returns all records that came out, in order, those of outputs last.
func (o *output) trialRecords() (out []trialRecord) {
	out = o.recordsOf("", o.batches, o.logs)
	for _, route := range slices.Sorted(maps.Keys(o.routed)) {
		out = append(out, o.recordsOf(route, o.routed[route], nil)...)
	}
	for _, route := range slices.Sorted(maps.Keys(o.routedLogs)) {
		out = append(out, o.recordsOf(route, nil, o.routedLogs[route])...)
	}
	return out
}

func (o *output) recordsOf(route string, samples []*batch.Metrics, logs []*batch.Logs) (out []trialRecord) {
	for _, b := range samples {
		for i, s := range b.Series {
			text := strings.TrimSuffix(string(batch.AppendTextAt(nil, b.Rows([]int{i}), o.t)), "\n")
			r := trialRecord{text: text[strings.LastIndexByte(text, '\n')+1:], series: s.String(), name: s.Name(), route: route}
			r.rest = strings.TrimPrefix(r.text, r.series+" ")
			r.add("name", r.name)
			r.addLabels(s)
			r.add("value", r.rest)
			if m := s.Meta(); m != nil {
				r.fields = append(r.fields, field{"type", string(m.Type), true}, field{"help", m.Help, true}, field{"unit", m.Unit, true})
			}
			r.finish()
			out = append(out, r)
		}
	}
	for _, b := range logs {
		for i, s := range b.Stream {
			text := strings.TrimSuffix(string(batch.AppendLogsTextAt(nil, b.Rows([]int{i}), o.nanos)), "\n")
			r := trialRecord{text: text, series: string(batch.AppendStream(nil, s)), rest: b.Line[i], route: route}
			r.addLabels(s)
			if at := b.T[i]; at != o.nanos {
				r.add("time", time.Unix(0, at).UTC().Format(time.RFC3339Nano))
			}
			for _, l := range b.MetaOf(i) {
				r.add("metadata "+l.Name, l.Value)
			}
			r.add("line", r.rest)
			r.finish()
			out = append(out, r)
		}
	}
	return out
}

func (r *trialRecord) add(name, value string) {
	r.fields = append(r.fields, field{name: name, value: value})
}

func (r *trialRecord) addLabels(s *batch.Series) {
	var b strings.Builder
	for n, v := range s.Labels() {
		if n != batch.NameLabel {
			r.add("label "+n, v)
			fmt.Fprintf(&b, "%q%q", n, v)
		}
	}
	r.labels = b.String()
}

func (r *trialRecord) finish() {
	if r.route != "" {
		r.fields = append(r.fields, field{"output", r.route, true})
		r.text = "→ " + r.route + " " + r.text
	}
	r.fields = slices.DeleteFunc(r.fields, func(f field) bool { return f.value == "" && f.name != "line" })
}

// key identifies records that are equal in all parts.
func (r *trialRecord) key() string {
	var b strings.Builder
	for _, f := range r.fields {
		fmt.Fprintf(&b, "%q%q", f.name, f.value)
	}
	return b.String()
}

// maxComparisons limits how often records are compared to find the most similar one.
const maxComparisons = 500_000

// compare finds out which records were kept, changed, dropped and added. A record that
// came out is a change of the input record that is most similar to it: they share at
// least half of their parts.
func (tr *Trial) compare(in, out []trialRecord) {
	used := make([]bool, len(in))
	equal := map[string][]int{}
	for i := range in {
		equal[in[i].key()] = append(equal[in[i].key()], i)
	}
	var others []trialRecord
	for _, r := range out {
		if same := equal[r.key()]; len(same) > 0 {
			used[same[0]], equal[r.key()] = true, same[1:]
			tr.Kept++
			continue
		}
		others = append(others, r)
	}
	alike := map[[2]string][]int{}
	for i := range in {
		if !used[i] {
			for _, k := range in[i].likeness() {
				alike[k] = append(alike[k], i)
			}
		}
	}
	candidates := max(maxComparisons/max(len(others), 1), 16)
	type pair struct{ in, out int }
	var pairs []pair
	for j := range others {
		best, most := -1, 0.0
		for _, k := range others[j].likeness() {
			left := alike[k]
			for len(left) > 0 && used[left[0]] {
				left = left[1:]
			}
			alike[k] = left
			for _, i := range left[:min(len(left), candidates)] {
				if used[i] {
					continue
				}
				if like := similarity(&in[i], &others[j]); like > most || like == most && like > 0 && i < best {
					best, most = i, like
				}
			}
		}
		if best < 0 {
			tr.Added = append(tr.Added, others[j].text)
			continue
		}
		used[best] = true
		pairs = append(pairs, pair{best, j})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return a.in - b.in })
	for _, p := range pairs {
		tr.Changed = append(tr.Changed, Change{in[p.in].text, differences(in[p.in].fields, others[p.out].fields)})
	}
	for i := range in {
		if !used[i] {
			tr.Dropped = append(tr.Dropped, in[i].text)
		}
	}
}

// likeness returns the keys under which similar records are found.
func (r *trialRecord) likeness() [][2]string {
	return [][2]string{{"series", r.series}, {"rest", r.rest}, {"name", r.name}, {"labels", r.labels}, {"any", ""}}
}

// similarity is how many parts two records share; 0 if they do not share half of the
// parts of the smaller one, or more than half if both name and value differ. Lines of the same stream
// are always alike. Lines share a part of a line.
func similarity(a, b *trialRecord) float64 {
	shared, sizeA, sizeB := 0.0, 0, 0
	for _, f := range a.fields {
		if !f.meta {
			sizeA++
		}
	}
	for _, f := range b.fields {
		if f.meta {
			continue
		}
		sizeB++
		for _, g := range a.fields {
			switch {
			case g.name != f.name:
			case g.value == f.value:
				shared++
			case f.name == "line":
				shared += sharedPart(g.value, f.value)
			}
		}
	}
	// The labels job and instance alone do not make two samples alike.
	if a.name == "" && b.name == "" && a.series == b.series {
		return shared + 0.001 // a script may replace the whole line
	}
	if half := float64(min(sizeA, sizeB)) / 2; shared < half || shared == half && a.name != b.name && a.rest != b.rest {
		return 0
	}
	return shared
}

// sharedPart is the share of two lines that their common beginning and end are.
func sharedPart(a, b string) float64 {
	short, long := a, b
	if len(short) > len(long) {
		short, long = long, short
	}
	head := 0
	for head < len(short) && short[head] == long[head] {
		head++
	}
	tail := 0
	for tail < len(short)-head && short[len(short)-1-tail] == long[len(long)-1-tail] {
		tail++
	}
	return float64(head+tail) / float64(max(len(long), 1))
}

// differences returns the parts that differ, in the order of the input, added parts last.
func differences(before, after []field) (out []FieldChange) {
	left := map[string]string{}
	for _, f := range after {
		left[f.name] = f.value
	}
	for _, f := range before {
		if v, ok := left[f.name]; !ok || v != f.value {
			out = append(out, FieldChange{f.name, f.value, v})
		}
		delete(left, f.name)
	}
	for _, f := range after {
		if v, ok := left[f.name]; ok {
			out = append(out, FieldChange{f.name, "", v})
		}
	}
	return out
}
