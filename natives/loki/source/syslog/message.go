package syslog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	golang "github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/rfc3164"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/weir-run/weir/engine/batch"
)

// Labels for relabel_rules.
const (
	labelIP       = "__syslog_connection_ip_address"
	labelHost     = "__syslog_connection_hostname"
	labelSeverity = "__syslog_message_severity"
	labelFacility = "__syslog_message_facility"
	labelHostname = "__syslog_message_hostname"
	labelAppName  = "__syslog_message_app_name"
	labelProcID   = "__syslog_message_proc_id"
	labelMsgID    = "__syslog_message_msg_id"
	labelCounter  = "__syslog_message_msg_counter"
	labelSequence = "__syslog_message_sequence"
	labelData     = "__syslog_message_sd_"
)

// message is the parsed content of a message.
type message struct {
	t      time.Time // zero if the message has no usable time
	line   string
	empty  bool
	labels []batch.Label // properties of the message that a rule reads, not sorted
}

// parser parses the messages of one connection. It is not safe for concurrent
// use.
type parser struct {
	*settings
	machine golang.Machine // nil for raw
	now     time.Time
	scratch []byte
}

func newParser(s *settings) *parser {
	p := &parser{settings: s}
	switch s.args.Format {
	case rfc5424Format:
		p.machine = rfc5424.NewParser()
	case rfc3164Format:
		o := []golang.MachineOption{rfc3164.WithRFC3339(), rfc3164.WithLenientDay(), rfc3164.WithEmbeddedNewlines()}
		if c := s.args.Cisco; c != nil {
			for _, part := range []struct {
				on bool
				o  golang.MachineOption
			}{
				{c.MessageCounter, rfc3164.WithMessageCounter()}, {c.SequenceNumber, rfc3164.WithSequenceNumber()},
				{c.Hostname, rfc3164.WithCiscoHostname()}, {c.SecondFractions, rfc3164.WithSecondFractions()},
			} {
				if part.on || c.EnableAll {
					o = append(o, part.o)
				}
			}
		}
		p.machine = rfc3164.NewParser(o...)
	}
	return p
}

// parse parses b into m, which does not alias b.
func (p *parser) parse(b []byte, m *message) error {
	*m = message{labels: m.labels[:0]}
	if p.machine == nil {
		p.raw(b, m)
		return nil
	}
	text, fraction := b, time.Duration(0)
	if p.args.Format == rfc3164Format {
		text, fraction = p.withoutFraction(b)
	}
	parsed, err := p.machine.Parse(text)
	if err != nil {
		return fmt.Errorf("%w%s", err, p.hint(b))
	}
	switch x := parsed.(type) {
	case *rfc5424.SyslogMessage:
		p.base(&x.Base, m)
		if x.StructuredData != nil && p.args.LabelStructuredData {
			p.structured(*x.StructuredData, m)
		}
		m.empty = x.Message == nil && !p.args.RFC5424AllowEmpty
		if p.args.UseRFC5424Message {
			m.line = string(b)
		}
	case *rfc3164.SyslogMessage:
		if x.Timestamp != nil && fraction > 0 {
			t := x.Timestamp.Add(fraction)
			x.Timestamp = &t
		}
		p.base(&x.Base, m)
		m.empty = x.Message == nil
	}
	return nil
}

// withoutFraction removes the fraction of a second from a timestamp such as
// 2024-01-02T03:04:05.123456+01:00, which rsyslog writes instead of the timestamp
// of RFC 3164. The parser only supports it without a fraction.
func (p *parser) withoutFraction(b []byte) ([]byte, time.Duration) {
	const seconds = len("2024-01-02T03:04:05")
	at := bytes.IndexByte(b[:min(5, len(b))], '>') + 1 + seconds
	if at >= len(b) || b[at] != '.' || b[at-9] != 'T' {
		return b, 0
	}
	end, fraction, unit := at+1, time.Duration(0), time.Second/10
	for ; end < len(b) && b[end] >= '0' && b[end] <= '9'; end++ {
		fraction += time.Duration(b[end]-'0') * unit
		unit /= 10
	}
	p.scratch = append(append(p.scratch[:0], b[:at]...), b[end:]...)
	return p.scratch, fraction
}

// raw parses only the priority.
func (p *parser) raw(b []byte, m *message) {
	if priority(b) {
		i := bytes.IndexByte(b, '>')
		if n, err := strconv.ParseUint(string(b[1:i]), 10, 8); err == nil {
			base := new(golang.Base)
			base.ComputeFromPriority(uint8(n))
			p.base(base, m)
			b = b[i+1:]
		}
	}
	m.line = string(bytes.TrimSpace(b))
	m.empty = m.line == ""
}

// base copies the properties that all formats have.
func (p *parser) base(x *golang.Base, m *message) {
	if x.Message != nil {
		m.line = *x.Message
	}
	if p.args.UseIncomingTimestamp && x.Timestamp != nil {
		m.t = *x.Timestamp
		if m.t.Year() == 0 && p.args.RFC3164CurrentYear {
			m.t = nearestYear(m.t, p.now)
		}
		if m.t.Year() < 1700 { // without a year, and outside the range of Unix nanoseconds
			m.t = time.Time{}
		}
	}
	add := func(f field, name string, v *string) {
		if v != nil && p.reads[f] {
			m.labels = append(m.labels, batch.Label{Name: name, Value: *v})
		}
	}
	if p.reads[severity] {
		add(severity, labelSeverity, x.SeverityLevel())
	}
	if p.reads[facility] {
		add(facility, labelFacility, x.FacilityLevel())
	}
	add(hostname, labelHostname, x.Hostname)
	add(appName, labelAppName, x.Appname)
	add(procID, labelProcID, x.ProcID)
	add(msgID, labelMsgID, x.MsgID)
	number := func(f field, name string, v *uint32) {
		if v != nil && p.reads[f] {
			m.labels = append(m.labels, batch.Label{Name: name, Value: strconv.FormatUint(uint64(*v), 10)})
		}
	}
	number(counter, labelCounter, x.MessageCounter)
	number(sequence, labelSequence, x.Sequence)
}

// structured copies the structured data.
func (p *parser) structured(data map[string]map[string]string, m *message) {
	from := len(m.labels)
	for id, params := range data {
		id = strings.ReplaceAll(id, "@", "_")
		for name, v := range params {
			if name = labelData + id + "_" + name; p.streams.Reads(name) {
				m.labels = append(m.labels, batch.Label{Name: name, Value: v})
			}
		}
	}
	// Sort them, because the order of a map would give the same labels several
	// cache keys.
	slices.SortFunc(m.labels[from:], func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
}

// nearestYear sets the year of t, which has none, so that it is near now.
func nearestYear(t, now time.Time) time.Time {
	year := now.Year()
	if ahead := time.Month(t.Month()) - now.Month(); ahead > 6 {
		year--
	} else if ahead < -6 {
		year++
	}
	return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

// hint returns advice for a message that cannot be parsed because it is in the
// other format.
func (p *parser) hint(b []byte) string {
	if !priority(b) {
		return `; a message begins with a priority such as <34>: syslog_format = "raw" takes any text`
	}
	rest := b[bytes.IndexByte(b, '>')+1:]
	numbered := len(rest) > 1 && rest[0] == '1' && rest[1] == ' '
	switch {
	case p.args.Format == rfc5424Format && !numbered:
		return `; it has no version after its priority, so it is of RFC 3164: set syslog_format = "rfc3164" for its sender`
	case p.args.Format == rfc3164Format && numbered:
		return `; it has a version after its priority, so it is of RFC 5424: set syslog_format = "rfc5424" for its sender`
	}
	return ""
}
