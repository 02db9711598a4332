package syslog

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/loki/source/internal/source"
)

// field is a property of a message or its connection that may become a label.
type field uint8

const (
	severity field = iota
	facility
	hostname
	appName
	procID
	msgID
	counter
	sequence
	ip
	host
	fields
)

var fieldLabels = [fields]string{
	labelSeverity, labelFacility, labelHostname, labelAppName, labelProcID, labelMsgID, labelCounter, labelSequence, labelIP, labelHost,
}

// settings are the settings of a listener, and the streams that were created with
// them.
type settings struct {
	args    *Listener
	rules   rule.Rules
	streams *source.Streams
	static  []batch.Label
	reads   [fields]bool // the fields that affect the labels
}

func newSettings(l *Listener, rules rule.Rules, forgot func(n int)) *settings {
	s := &settings{args: l, rules: rules, streams: source.NewStreams(rules, source.MaxStreams, forgot)}
	for name, v := range l.Labels {
		s.static = append(s.static, batch.Label{Name: name, Value: v})
	}
	for f, label := range fieldLabels {
		s.reads[f] = s.streams.Reads(label)
	}
	return s
}

// lines builds batches from the messages of one connection, or of one UDP
// address. It is not safe for concurrent use.
type lines struct {
	l      *listener
	source uint64
	p      *parser
	framer framer
	remote []batch.Label // labels of the sender

	m       message
	builder batch.Builder
	key     []byte
	known   map[string]known
	bytes   int // size of the keys of known
	b       *batch.Logs
	last    int64 // Unix ns

	parsed, failed, empty, cut, dropped int
	err                                 error // the first
	sample                              []byte
}

// known is the stream for the properties of a message.
type known struct {
	stream *batch.Stream
	asked  time.Time
}

// maxKnown and maxKnownBytes limit the streams that a connection caches in
// addition to its listener. There may be thousands of connections, and messages
// determine the size of their labels.
const (
	maxKnown      = 1024
	maxKnownBytes = 128 << 10
)

// setSettings sets the settings for messages that are added from now on.
func (x *lines) setSettings(s *settings) {
	if x.p != nil && x.p.settings == s {
		return
	}
	x.p = newParser(s)
	x.known, x.bytes = map[string]known{}, 0
	x.framer.max, x.framer.raw, x.framer.delim = s.args.maxLength(), s.args.Format == rawFormat, '\n'
	x.framer.datagram = s.args.Protocol == "udp" && !x.framer.raw
	if r := s.args.Raw; r != nil && r.Null {
		x.framer.delim = 0
	}
}

// addAll adds the messages in b and returns the number of bytes of b that they
// took.
func (x *lines) addAll(b []byte, end bool, now time.Time) (n int, err error) {
	x.p.now = now
	for {
		f, took, ok, err := x.framer.next(b[n:], end)
		n += took
		switch {
		case err != nil:
			return n, err
		case ok:
			x.add(f, now)
		case took == 0:
			return n, nil
		}
	}
}

// add adds one message.
func (x *lines) add(f frame, now time.Time) {
	if f.cut {
		x.cut++
	}
	if err := x.p.parse(f.msg, &x.m); err != nil {
		if x.failed++; x.err == nil {
			x.err, x.sample = err, slices.Clone(f.msg[:min(len(f.msg), 120)])
		}
		return
	}
	x.parsed++
	if x.m.empty {
		x.empty++
		return
	}
	s := x.stream(now)
	if s == nil {
		x.dropped++
		return
	}
	if x.b == nil {
		x.b = &batch.Logs{Source: x.source}
	}
	// Loki treats lines with the same stream, time and text as one.
	x.last = max(now.UnixNano(), x.last+1)
	t := x.last
	if !x.m.t.IsZero() {
		t = x.m.t.UnixNano()
	}
	x.b.Stream, x.b.T, x.b.Line = append(x.b.Stream, s), append(x.b.T, t), append(x.b.Line, x.m.line)
}

// stream returns the stream of the message, or nil if the rules drop it.
func (x *lines) stream(now time.Time) *batch.Stream {
	x.key = x.key[:0]
	for _, ls := range [][]batch.Label{x.remote, x.m.labels} {
		for _, l := range ls {
			x.key = append(binary.AppendUvarint(x.key, uint64(len(l.Name))), l.Name...)
			x.key = append(binary.AppendUvarint(x.key, uint64(len(l.Value))), l.Value...)
		}
	}
	if k, ok := x.known[string(x.key)]; ok && now.Sub(k.asked) < source.Recheck {
		return k.stream
	}
	x.builder.Reset(nil)
	for _, ls := range [][]batch.Label{x.p.static, x.remote, x.m.labels} {
		for _, l := range ls {
			x.builder.Set(l.Name, strings.ToValidUTF8(l.Value, "\uFFFD"))
		}
	}
	s := x.p.streams.Of(x.builder.Labels(), now)
	if _, again := x.known[string(x.key)]; !again {
		if len(x.known) >= maxKnown || x.bytes+len(x.key) > maxKnownBytes {
			x.known, x.bytes = map[string]known{}, 0
		}
		x.bytes += len(x.key)
	}
	x.known[string(x.key)] = known{s, now}
	return s
}

// takeBatch returns the batch of the added messages, or nil if there are none,
// and counts the dropped ones.
func (x *lines) takeBatch() *batch.Logs {
	stats := x.l.c.o.Stats
	stats.DropLines("parse_error", x.failed)
	stats.DropLines("empty", x.empty)
	stats.DropLines("relabel", x.dropped)
	x.l.c.metrics.cut.Add(float64(x.cut))
	x.l.logParseState(x.parsed > 0, x.err, x.sample)
	x.parsed, x.failed, x.empty, x.cut, x.dropped, x.err, x.sample = 0, 0, 0, 0, 0, nil, nil
	b := x.b
	x.b = nil
	return b
}
