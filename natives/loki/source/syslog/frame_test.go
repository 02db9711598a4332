package syslog_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/natives/loki/source/syslog"
)

// chunks passes text to a framer in pieces of n bytes, like a connection.
func chunks(f *syslog.Framer, text string, n, limit int) (out []syslog.Frame, err error) {
	var buf []byte
	for len(text) > 0 {
		k := min(n, len(text), limit+syslog.Room+1-len(buf))
		buf, text = append(buf, text[:k]...), text[k:]
		ms, took, err := f.All(buf, len(text) == 0)
		out = append(out, ms...)
		if err != nil {
			return out, err
		}
		buf = append([]byte(nil), buf[took:]...)
	}
	return out, nil
}

func TestFramer(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		for _, n := range []int{1, 2, 3, 7, 1000} {
			var got []string
			ms, err := chunks(syslog.NewFramer(20, false, false, false), text, n, 20)
			for _, m := range ms {
				if m.Cut {
					m.Msg += "…"
				}
				got = append(got, m.Msg)
			}
			if err != nil {
				got = append(got, "error")
			}
			if d := gocmp.Diff(want, got); d != "" {
				t.Errorf("%q, %d bytes at a time (-want +got):\n%s", text, n, d)
			}
		}
	}
	f("<1>a\n<1>b\n", "<1>a", "<1>b")
	f("<1>a\r\n\n\x00 <1>b", "<1>a", "<1>b")
	f("4 <1>a4 <1>b", "<1>a", "<1>b")
	f("4 <1>a\n<1>b\n4 <1>c", "<1>a", "<1>b", "<1>c")
	f("6 <1>a\nb<1>c\n", "<1>a\nb", "<1>c")
	f("<1>"+strings.Repeat("x", 30)+"\n<1>b\n", "<1>"+strings.Repeat("x", 17)+"…", "<1>b")
	f("33 <1>"+strings.Repeat("x", 30)+"<1>b\n", "<1>"+strings.Repeat("x", 17)+"…", "<1>b")
	f("10 <1>a", "<1>a…")
	f("12 no priority\n<1>b\n", "12 no priority", "<1>b")
	f("12", "12")
	f("<1>a\n1234567890 <1>b\n", "<1>a", "error")
	f("")
}

func FuzzFramer(f *testing.F) {
	f.Add("<1>a\n4 <1>b", uint8(3), false, false)
	f.Add("33 <1>xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\x00", uint8(1), true, true)
	f.Fuzz(func(t *testing.T, text string, n uint8, raw, null bool) {
		const limit = 24
		size := int(n)%40 + 1
		whole, _, err := syslog.NewFramer(limit, raw, false, null).All([]byte(text), true)
		if err != nil {
			whole = nil
		}
		got, err2 := chunks(syslog.NewFramer(limit, raw, false, null), text, size, limit)
		total := 0
		for _, m := range got {
			if len(m.Msg) > limit || m.Msg == "" {
				t.Fatalf("a message has %d bytes, want 1 to %d", len(m.Msg), limit)
			}
			total += len(m.Msg)
		}
		if total > len(text) {
			t.Fatalf("%d bytes of messages from %d", total, len(text))
		}
		if err == nil && err2 == nil {
			if d := gocmp.Diff(whole, got); d != "" {
				t.Fatalf("in pieces of %d it is something else (-whole +pieces):\n%s", size, d)
			}
		}
		if _, _, err := syslog.NewFramer(limit, raw, true, null).All([]byte(text), true); (err != nil) != (err2 != nil) && !null && !strings.Contains(text, "\n") {
			t.Fatalf("as a datagram it is an error %v, as a connection %v", err, err2)
		}
	})
}
