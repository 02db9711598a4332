package journal

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/source"
)

// entry is one of the journal.
type entry struct {
	fields map[string]string
	cursor string
	usec   int64 // Unix µs
}

// liner makes lines of entries. It is not safe for concurrent use.
type liner struct {
	json    bool
	labels  []batch.Label
	streams *source.Streams
	reads   map[string]string // labels that some rule reads, "" if none does, by field
	builder batch.Builder
}

func newLiner(a *Arguments, id string) *liner {
	l := &liner{json: a.FormatAsJSON, streams: source.NewStreams(a.RelabelRules), reads: map[string]string{}}
	for name, v := range a.Labels {
		if name != "job" {
			l.labels = append(l.labels, batch.Label{Name: name, Value: v})
		}
	}
	l.labels = append(l.labels, batch.Label{Name: "job", Value: id})
	return l
}

// The fields that are more than labels.
const (
	fieldMessage  = "MESSAGE"
	fieldPriority = "PRIORITY"
)

var priorities = [...]string{"emerg", "alert", "crit", "error", "warning", "notice", "info", "debug"}

// line returns the text of an entry, "" when it has none.
func (l *liner) line(e *entry) string {
	if !l.json {
		return e.fields[fieldMessage]
	}
	b, err := json.Marshal(e.fields)
	if err != nil { // of strings it never is
		return ""
	}
	return string(b)
}

// maxFields bounds how many fields' labels are remembered; journals have some
// hundreds.
const maxFields = 10_000

// stream returns the stream of an entry, nil when the rules drop it.
func (l *liner) stream(e *entry, now int64) *batch.Stream {
	l.builder.Reset(nil)
	for _, x := range l.labels {
		l.builder.Set(x.Name, x.Value)
	}
	for field, v := range e.fields {
		l.set("__journal_"+strings.ToLower(field), field, v)
	}
	if p := e.fields[fieldPriority]; p != "" {
		if n, err := strconv.Atoi(p); err == nil && n >= 0 && n < len(priorities) {
			p = priorities[n]
		}
		l.set("__journal_priority_keyword", "", p)
	}
	return l.streams.Of(l.builder.Labels(), timeOf(now))
}

// set sets a label if some rule reads it. field is what it is remembered by.
func (l *liner) set(label, field, v string) {
	name, ok := l.reads[field]
	if !ok {
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

// time returns the entry's in Unix ns, always the same of an entry: entries of
// one microsecond are told apart by their number in the journal, since lines that
// are equal in stream, time and text are one to Loki.
func (e *entry) time() int64 {
	t := e.usec * 1000
	for part := range strings.SplitSeq(e.cursor, ";") {
		if hex, ok := strings.CutPrefix(part, "i="); ok {
			if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
				t += int64(n % 1000)
			}
		}
	}
	return t
}
