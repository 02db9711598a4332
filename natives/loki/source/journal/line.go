package journal

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/source/internal/source"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// liner converts entries to lines. It is not safe for concurrent use.
type liner struct {
	json    bool
	matches map[string][]string // by field: the values that are allowed
	labels  []batch.Label
	streams *source.Streams
	reads   map[string]string // by field: its label, "" if no rule reads it
	builder batch.Builder
}

func newLiner(a *Arguments, id string) *liner {
	l := &liner{json: a.FormatAsJSON, streams: source.NewStreams(a.RelabelRules, source.MaxStreams, func(int) {}), reads: map[string]string{}, matches: map[string][]string{}}
	for _, m := range strings.Fields(a.Matches) {
		name, value, _ := strings.Cut(m, "=")
		l.matches[name] = append(l.matches[name], value)
	}
	for name, v := range a.Labels {
		if name != "job" {
			l.labels = append(l.labels, batch.Label{Name: name, Value: v})
		}
	}
	l.labels = append(l.labels, batch.Label{Name: "job", Value: id})
	return l
}

// Fields with a special meaning.
const (
	fieldMessage  = "MESSAGE"
	fieldPriority = "PRIORITY"
	labelKeyword  = "__journal_priority_keyword"
)

var priorities = [...]string{"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"}

// matched reports whether an entry has the required fields.
func (l *liner) matched(e *journalfile.Entry) bool {
	for name, values := range l.matches {
		if !slices.ContainsFunc(e.Fields, func(f journalfile.Field) bool { return f.Name == name && slices.Contains(values, f.Value) }) {
			return false
		}
	}
	return true
}

// line returns the text of an entry, or "".
func (l *liner) line(e *journalfile.Entry) string {
	if !l.json {
		for _, f := range slices.Backward(e.Fields) {
			if f.Name == fieldMessage {
				return f.Value
			}
		}
		return ""
	}
	fields := make(map[string]string, len(e.Fields))
	for _, f := range e.Fields {
		fields[f.Name] = f.Value
	}
	b, err := json.Marshal(fields)
	if err != nil { // encoding a map of strings never fails
		return ""
	}
	return string(b)
}

// maxFields is the maximum number of fields whose labels are cached. Journals
// have some hundreds.
const maxFields = 10_000

// stream returns the stream of an entry, or nil if the rules drop it.
func (l *liner) stream(e *journalfile.Entry, now int64) *batch.Stream {
	l.builder.Reset(nil)
	for _, x := range l.labels {
		l.builder.Set(x.Name, x.Value)
	}
	for _, f := range e.Fields {
		l.set(f.Name, f.Value)
		if f.Name == fieldPriority {
			p := f.Value
			if n, err := strconv.Atoi(p); err == nil && n >= 0 && n < len(priorities) {
				p = priorities[n]
			}
			l.set("", p)
		}
	}
	return l.streams.Of(l.builder.Labels(), time.Unix(0, now))
}

// set sets the label of a field if a rule reads it. The field "" stands for the
// keyword of the priority.
func (l *liner) set(field, v string) {
	name, ok := l.reads[field]
	if !ok {
		label := "__journal_" + strings.ToLower(field)
		if field == "" {
			label = labelKeyword
		}
		if l.streams.Reads(label) {
			name = label
		}
		if len(l.reads) >= maxFields {
			clear(l.reads)
		}
		l.reads[field] = name
	}
	if name == "" {
		return
	}
	if !utf8.ValidString(v) {
		v = strings.ToValidUTF8(v, "\uFFFD")
	}
	l.builder.Set(name, v)
}

// timestamp returns the time of an entry in Unix ns, which never changes for an
// entry. The nanoseconds come from the entry's number, because Loki treats lines
// of a stream with the same time and text as one, and journald only counts
// microseconds.
func timestamp(c journalfile.Cursor) int64 { return int64(c.Realtime)*1000 + int64(c.Seqnum%1000) }
