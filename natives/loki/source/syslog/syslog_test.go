package syslog_test

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/syslog"
)

// everything contains all labels that a message may have.
var everything = []string{
	"connection_ip_address", "connection_hostname", "message_severity", "message_facility", "message_hostname",
	"message_app_name", "message_proc_id", "message_msg_id", "message_msg_counter", "message_sequence",
}

func TestRFC5424(t *testing.T) {
	s := start(t, func(l *syslog.Listener) {
		l.Labels = map[string]string{"job": "syslog"}
		l.LabelStructuredData = true
	}, append(everything, "message_sd_example_99999_test")...)
	conn := s.dial()
	msg := `<165>1 2018-10-11T22:14:15.003Z host5 e 42 id1 [example@99999 test="yes" other="no"] An application event`
	send(t, conn, msg+" one\n"+fmt.Sprintf("%d %s two", len(msg)+4, msg)+fmt.Sprintf("%d %s\nand a second line", len(msg)+18, msg)+"\n<13>1 - - - - - - nothing else\r\n")
	s.want(
		`{app_name="e",connection_hostname="host-of-127.0.0.1",connection_ip_address="127.0.0.1",facility="local4",hostname="host5",job="syslog",msg_id="id1",proc_id="42",sd_example_99999_test="yes",severity="notice"} An application event one`,
		`{app_name="e",connection_hostname="host-of-127.0.0.1",connection_ip_address="127.0.0.1",facility="local4",hostname="host5",job="syslog",msg_id="id1",proc_id="42",sd_example_99999_test="yes",severity="notice"} An application event two`,
		`{app_name="e",connection_hostname="host-of-127.0.0.1",connection_ip_address="127.0.0.1",facility="local4",hostname="host5",job="syslog",msg_id="id1",proc_id="42",sd_example_99999_test="yes",severity="notice"} An application event`+"\nand a second line",
		`{connection_hostname="host-of-127.0.0.1",connection_ip_address="127.0.0.1",facility="user",job="syslog",severity="notice"} nothing else`,
	)
}

func TestStreamsAreShared(t *testing.T) {
	s := start(t, nil, "message_app_name")
	a, b := s.dial(), s.dial()
	send(t, a, "<13>1 - h1 app 1 - - one\n<14>1 - h2 app 2 - - two\n")
	s.want(`{app_name="app"} one`, `{app_name="app"} two`)
	send(t, b, "<13>1 - h3 app 3 - - three\n")
	s.want(`{app_name="app"} one`, `{app_name="app"} two`, `{app_name="app"} three`)
	bs := s.sink.Logs()
	if bs[0].Stream[0] != bs[len(bs)-1].Stream[0] {
		t.Error("the same labels of two connections are two handles")
	}
	if bs[0].Source == bs[len(bs)-1].Source {
		t.Error("two connections have the same Source, their batches may come at once")
	}
}

func TestBadMessages(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	send(t, conn, "<13>Oct 11 22:14:15 mymachine su: failed\nno priority at all\n<13>1 - - - - - -\n<13>1 - - - - - - good\n")
	s.want(`{} good`)
	s.dropped("parse_error", 2)
	s.dropped("empty", 1)
	if log := s.Logs(); strings.Count(log, "cannot parse a message") != 1 || !strings.Contains(log, `set syslog_format = \"rfc3164\"`) {
		t.Errorf("the log should say once what to do about the message:\n%s", log)
	}
	send(t, conn, "<13>1 - - - - - - better\nbad again\n<13>1 - - - - - - good again\n")
	s.want(`{} good`, `{} better`, `{} good again`)
	if n := strings.Count(s.Logs(), "cannot parse a message"); n != 1 {
		t.Errorf("the log speaks %d times of messages that do not parse, within a minute", n)
	}
}

func TestFormats(t *testing.T) {
	f := func(name string, edit func(*syslog.Listener), text string, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			s := start(t, edit, everything[2:]...)
			send(t, s.dial(), text)
			s.want(want...)
		})
	}
	f("rfc5424 whole message", func(l *syslog.Listener) { l.UseRFC5424Message = true },
		"<13>1 - h a - - [x@1 b=\"2\" a=\"1\"] text\n", `{app_name="a",facility="user",hostname="h",severity="notice"} <13>1 - h a - - [x@1 b="2" a="1"] text`)
	f("rfc5424 empty messages", func(l *syslog.Listener) { l.RFC5424AllowEmpty = true },
		"<13>1 - h a - - -\n", `{app_name="a",facility="user",hostname="h",severity="notice"} `)
	f("rfc3164", func(l *syslog.Listener) { l.Format = "rfc3164" },
		"<34>Oct 11 22:14:15 mymachine su[31]: 'su root' failed for lonvick on /dev/pts/8\n",
		`{app_name="su",facility="auth",hostname="mymachine",proc_id="31",severity="critical"} 'su root' failed for lonvick on /dev/pts/8`)
	f("rfc3164 with a zero before the day, and a whole timestamp", func(l *syslog.Listener) { l.Format = "rfc3164" },
		"<34>Feb 05 22:14:15 m a: one\n<34>2024-01-02T03:04:05.123456+01:00 m a: two\n",
		`{app_name="a",facility="auth",hostname="m",severity="critical"} one`, `{app_name="a",facility="auth",hostname="m",severity="critical"} two`)
	f("rfc3164 of Cisco", func(l *syslog.Listener) { l.Format, l.Cisco = "rfc3164", &syslog.Cisco{EnableAll: true} },
		"<189>237: 000485: router1: Jan 8 19:46:03.295: %SYS-5-CONFIG_I: Configured\n<189>237: 000485: router1: Jan  8 19:46:03.295: %SYS-5-CONFIG_I: Configured\n",
		`{app_name="%SYS-5-CONFIG_I",facility="local7",hostname="router1",msg_counter="237",sequence="485",severity="notice"} Configured`)
	f("raw", func(l *syslog.Listener) { l.Format = "raw" },
		"<34>CEF:0|a|b\n  no priority \n12 hello worlds\n2024-01-01 a date\n<999>no priority\n",
		`{facility="auth",severity="critical"} CEF:0|a|b`, `{} no priority`, `{} hello worlds`, `{} 2024-01-01 a date`, `{} <999>no priority`)
	f("raw with zero bytes", func(l *syslog.Listener) { l.Format, l.Raw = "raw", &syslog.Raw{Null: true} },
		"one\nline\x00two\x00", "{} one\nline", `{} two`)
}

func TestIncomingTimestamp(t *testing.T) {
	f := func(name string, edit func(*syslog.Listener), text, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			s := start(t, func(l *syslog.Listener) { l.UseIncomingTimestamp = true; edit(l) })
			send(t, s.dial(), text)
			s.want(`{} text`)
			if got := time.Unix(0, s.sink.Logs()[0].T[0]).UTC().Format(time.RFC3339Nano); got != want {
				t.Errorf("the line is of %s, want %s", got, want)
			}
		})
	}
	bsd := func(l *syslog.Listener) { l.Format, l.RFC3164CurrentYear = "rfc3164", true }
	f("rfc5424", func(*syslog.Listener) {}, "<13>1 2018-10-11T22:14:15.003+02:00 - - - - - text\n", "2018-10-11T20:14:15.003Z")
	f("rfc5424 without one", func(*syslog.Listener) {}, "<13>1 - - - - - - text\n", "2025-01-01T00:00:00Z")
	f("rfc3164 of this year", bsd, "<13>Mar  1 00:00:01 h a: text\n", "2025-03-01T00:00:01Z")
	f("rfc3164 of last year", bsd, "<13>Dec 31 23:59:59 h a: text\n", "2024-12-31T23:59:59Z")
	f("rfc3164 with a whole timestamp", func(l *syslog.Listener) { l.Format = "rfc3164" }, "<13>2024-01-02T03:04:05.1234+01:00 h a: text\n", "2024-01-02T02:04:05.1234Z")
	f("rfc3164 without a year", func(l *syslog.Listener) { l.Format = "rfc3164" }, "<13>Mar  1 00:00:01 h a: text\n", "2025-01-01T00:00:00Z")
}

func TestLongMessages(t *testing.T) {
	s := start(t, func(l *syslog.Listener) { l.MaxMessageLength = 30 })
	conn := s.dial()
	head := "<13>1 - - - - - - " // 18
	long := head + "twelve bytesé and more that is cut, 日本"
	send(t, conn, long+"\n"+fmt.Sprintf("%d %s", len(long), long)+head+"good\n")
	send(t, conn, head+strings.Repeat("x", 100_000)+"\n"+head+"last\n")
	s.want(`{} twelve bytes`, `{} twelve bytes`, `{} good`, `{} xxxxxxxxxxxx`, `{} last`)
	got, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		if f.GetName() == "weir_source_syslog_cut_messages_total" && f.Metric[0].GetCounter().GetValue() != 3 {
			t.Errorf("%v messages were cut, want 3", f.Metric[0].GetCounter().GetValue())
		}
	}
}

func TestFramingError(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	send(t, conn, "<13>1 - - - - - - good\n99999999999 <13>1 - - - - - - bad\n")
	if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection should have been closed, got %v", err)
	}
	s.want(`{} good`)
	s.dropped("framing", 1)
}

func TestLastMessageWithoutNewline(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	send(t, conn, "<13>1 - - - - - - one\n<13>1 - - - - - - two")
	conn.Close()
	s.want(`{} one`, `{} two`)
}

func TestBackPressure(t *testing.T) {
	s := start(t, nil)
	open := s.gate.shut()
	conn := s.dial()
	var want []string
	var text strings.Builder
	for i := range 20_000 {
		want = append(want, fmt.Sprintf("{} line %d", i))
		fmt.Fprintf(&text, "<13>1 - - - - - - line %d\n", i)
	}
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, text.String())
		done <- err
	}()
	<-s.gate.called
	if n := len(s.sink.Logs()); n != 0 {
		t.Errorf("%d batches came through a closed gate", n)
	}
	open()
	s.want(want...)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUDP(t *testing.T) {
	s := start(t, func(l *syslog.Listener) { l.Protocol = "udp" }, "connection_ip_address", "connection_hostname")
	conn := s.dial()
	var want []string
	f := func(text string, lines ...string) {
		t.Helper()
		send(t, conn, text)
		for _, l := range lines {
			want = append(want, `{connection_hostname="host-of-127.0.0.1",connection_ip_address="127.0.0.1"} `+l)
		}
		s.want(want...)
	}
	f("<13>1 - - - - - - no newline", "no newline")
	f("<13>1 - - - - - - newline\n", "newline")
	f("<13>1 - - - - - - several\nlines\n\nof one", "several\nlines\n\nof one")
	f("<13>1 - - - - - - a\n<13>1 - - - - - - b", "a", "b")
	f("20 <13>1 - - - - - - ab", "ab")
	f("<13>1 - - - - - - "+strings.Repeat("x", 9000), strings.Repeat("x", 8192-18))
	f("<13>1 - - - - - - after it", "after it")
}

func TestUDPQueue(t *testing.T) {
	if n := syslog.Put(30<<10, 3); n != 6 {
		t.Errorf("%d datagrams of 30 KiB found room in 3 blocks of 64 KiB, want 6", n)
	}
	s := start(t, func(l *syslog.Listener) { l.Protocol, l.UDPQueueSize = "udp", 1 })
	defer s.gate.shut()()
	conn := s.dial()
	for s.Stats.DroppedLines()["queue_full"] == 0 {
		send(t, conn, "<13>1 - - - - - - "+strings.Repeat("x", 30_000))
	}
	if !strings.Contains(s.Logs(), "datagrams are dropped") {
		t.Errorf("the log does not mention the dropped datagrams:\n%s", s.Logs())
	}
}

func TestUpdate(t *testing.T) {
	s := start(t, nil)
	conn := s.dial()
	send(t, conn, "<13>1 - h - - - - one\n")
	s.want(`{} one`)
	address := s.address()

	a := *s.args
	a.RelabelRules = mapped("message_hostname")
	a.Listeners = []*syslog.Listener{listener(func(l *syslog.Listener) { l.Labels = map[string]string{"job": "j"} })}
	other := flowtest.NewSink("other")
	a.ForwardTo = []*flow.Receiver{other.Receiver()}
	if err := s.c.(component.Updater).Update(&a); err != nil {
		t.Fatal(err)
	}
	send(t, conn, "<13>1 - h - - - - two\n")
	before := s.sink
	s.sink = other
	s.want(`{hostname="h",job="j"} two`)
	if got := s.address(); got != address {
		t.Errorf("it listens on %s now, want %s still", got, address)
	}
	if n := len(before.Logs()); n != 1 {
		t.Errorf("the old receiver got %d batches, want 1", n)
	}

	a.Listeners = nil
	if err := s.c.(component.Updater).Update(&a); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("the connection of a listener that was removed should end, got %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := build(t, func(a *syslog.Listener) { a.Address = l.Addr().String() })
	s.stop = s.Run(t, s.c)
	s.Wait(t, func() bool { return s.Health().State == component.Unhealthy })
	if h := s.Health(); !strings.Contains(h.Message, "in use") || !strings.Contains(h.Message, "address in a block listener of ") {
		t.Errorf("health is %q", h.Message)
	}
	l.Close()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.advance(time.Second, done)
	}()
	s.Wait(t, func() bool { return s.Health().State == component.Healthy })
	close(done)
	<-ended
}

func TestIdle(t *testing.T) {
	s := start(t, func(l *syslog.Listener) { l.IdleTimeout = time.Millisecond })
	if _, err := io.ReadAll(s.dial()); err != nil {
		t.Errorf("an idle connection should end, got %v", err)
	}
}

func TestStop(t *testing.T) {
	s := start(t, nil)
	open := s.gate.shut()
	send(t, s.dial(), "<13>1 - - - - - - one\n")
	<-s.gate.called
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stop()
	}()
	open()
	s.want(`{} one`)
	<-stopped
}

func TestStopInAnOutage(t *testing.T) {
	s := start(t, nil)
	s.sink.Refuse(flowtest.ErrRefused)
	send(t, s.dial(), "<13>1 - - - - - - one\n")
	<-s.gate.called
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stop()
	}()
	s.advance(time.Second, stopped)
	s.dropped("stopped", 1)
}

func TestLogger(t *testing.T) {
	path, err := exec.LookPath("logger")
	if err != nil {
		t.Skip("there is no logger here")
	}
	f := func(format, protocol string, args ...string) {
		t.Helper()
		t.Run(strings.Join(append(args, protocol), " "), func(t *testing.T) {
			s := start(t, func(l *syslog.Listener) { l.Format, l.Protocol = format, protocol }, "message_app_name", "message_severity", "message_facility")
			host, port, _ := net.SplitHostPort(s.address())
			args = append(args, "--server", host, "--port", port, "--"+protocol, "-t", "test", "-p", "mail.warning", "hello there")
			if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
				t.Skipf("%s does not know how: %v: %s", path, err, out)
			}
			s.want(`{app_name="test",facility="mail",severity="warning"} hello there`)
		})
	}
	f("rfc5424", "tcp", "--rfc5424")
	f("rfc5424", "tcp", "--rfc5424", "--octet-count")
	f("rfc5424", "udp", "--rfc5424")
	f("rfc3164", "tcp", "--rfc3164")
	f("rfc3164", "udp", "--rfc3164")
}
