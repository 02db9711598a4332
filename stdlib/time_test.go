package stdlib_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/scripting"
)

func TestTimeParse(t *testing.T) {
	f := func(s, layout, zone string, want int64) {
		t.Helper()
		args := []scripting.Value{s, layout}
		if zone != "" {
			args = append(args, zone)
		}
		got, err := call(t, "time.parse", args...)
		if err != nil || got != want {
			t.Errorf("%q as %q: got %v, %v, want %d", s, layout, got, err, want)
		}
	}
	const at = 1700000000000 // 2023-11-14T22:13:20Z
	f("2023-11-14T22:13:20Z", "rfc3339", "", at)
	f("2023-11-14T23:13:20.5+01:00", "rfc3339", "", at+500)
	f("Tue, 14 Nov 2023 22:13:20 GMT", "rfc1123", "", at)
	f("1969-12-31T23:59:59.9995Z", "rfc3339", "", -1)
	f("1700000000", "unix", "", at)
	f("1700000000.0019", "unix", "", at+1)
	f("1700000000001", "unix_ms", "", at+1)
	f("-1", "unix", "", -1000)
	f("-0.5", "unix", "", -500)
	// strftime
	f("2023-11-14 22:13:20", "%Y-%m-%d %H:%M:%S", "", at)
	f("2023-11-14 23:13:20", "%F %T", "Europe/Berlin", at)
	f("14/Nov/2023:23:13:20 +0100", "%d/%b/%Y:%H:%M:%S %z", "", at)
	f("2023-11-14T22:13:20.123456Z", "%Y-%m-%dT%H:%M:%S.%f%z", "", at+123)
	f("Tuesday, november 14 2023 10:13 pm UTC", "%A, %B %d %Y %I:%M %p %Z", "America/New_York", at-20000)
	f("12:00 AM", "%I:%M %p", "", 0)
	f("12:30 PM", "%I:%M %p", "", 45000000)
	f("Nov  4 22:13:20 23", "%b %e %T %y", "", at-10*86400000)
	f("2023 318", "%Y %j", "", at-80000000)
	f("1700000000.5", "%s.%L", "", at+500)
	f("at 2: 100%", "at 2: 100%%", "", 0)
	f("23:59:60", "%T", "", 86400000)
	f("2020-02-29 23:59:60", "%F %T", "", 1583020800000)
	f("2024-02-29", "%F", "", 1709164800000)
	f("2024 366", "%Y %j", "", 1735603200000)
	f("01.1.2024", "%-d.%_m.%Y", "", 1704067200000)
	f("2024-W01-1", "%G-W%V-%u", "", 1704067200000)
	f("10+01:30", "%H%z", "", 30600000)
	f("10+01:30", "%H%:z", "", 30600000)
	f("2023-11-14 23:13:20 CET", "%F %T %Z", "Europe/Berlin", at)
	f("2023-11-14 23:13:20 CET +0100", "%F %T %Z %z", "", at)
	f("20.123456789 2023", "%S.%N %Y", "", 1672531220123)
	f("20.123 2023", "%S.%L %Y", "", 1672531220123)

	fails := func(s, layout, want string) {
		t.Helper()
		if _, err := call(t, "time.parse", s, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q as %q: got error %v, want %q", s, layout, err, want)
		}
	}
	fails("2023-02-30", "%F", "out of range")
	fails("2023-02-30", "date", "out of range")
	fails("30 Feb 2024", "%d %b %Y", "out of range")
	fails("31 Apr", "%d %b", "out of range")
	fails("29 Feb", "%d %b", "out of range") // 1970
	fails("9300000000000000", "%s", "out of range")
	fails("-9300000000000000", "%s", "out of range")
	fails("0", "%d", `cannot parse "%d"`)
	fails("1", "%3L", `unknown conversion "%3L"`)
	fails("1", "%:d", `unknown conversion "%:d"`)
	fails("1", "%9", "incomplete conversion")
	fails("25:00", "%R", `cannot parse "%H"`)
	fails("13:00 PM", "%I:%M %p", `cannot parse "%I"`)
	fails("2023 366", "%Y %j", "out of range")
	fails("x", "%Y", `cannot parse "%Y"`)
	fails("2023-1", "%Y/%m", `expected '/'`)
	fails("2023x", "%Y", `unparsed string "x"`)
	fails("2023", "%Q", `unknown conversion "%Q"`)
	fails("2023", "%Y%", "the layout ends with an incomplete conversion")
	fails("10 CEST", "%H %Z", "the UTC offset of the time zone CEST is unknown")
	fails("10 +1", "%H %z", `cannot parse "%z"`)
	fails("Mai 1", "%b %d", `cannot parse "%b"`)
	fails("1.2.3", "unix", "not a number of seconds")
	fails("", "unix_ms", "not a number of milliseconds")
	fails("99999999999999999999", "unix", "not a number of seconds")
	fails(strings.Repeat("1", 300), "unix", "longer than 256 bytes")
	fails("1", strings.Repeat("1", 300), "the limit is 256")

	for _, zone := range []string{"Local", "", "../../etc/passwd", "/etc/localtime"} {
		if _, err := call(t, "time.parse", "2023-11-14", "date", zone); err == nil || !strings.Contains(err.Error(), "cannot use time zone") {
			t.Errorf("zone %q: got error %v", zone, err)
		}
	}
}

func TestTimeFormat(t *testing.T) {
	f := func(ms int64, layout, want string) {
		t.Helper()
		if got, err := call(t, "time.format", ms, layout); err != nil || got != want {
			t.Errorf("%d as %q: got %v, %v, want %q", ms, layout, got, err, want)
		}
	}
	f(1700000000123, "%a %A %b %B %d %e %H %I %j %m %M %p %S %y %Y %z %Z %%", "Tue Tuesday Nov November 14 14 22 10 318 11 13 PM 20 23 2023 +0000 UTC %")
	f(1700000000123, "%s %f %L %N|%D|%R|%r|%c|%n%t", "1700000000 123000 123 123000000|11/14/23|22:13|10:13:20 PM|Tue Nov 14 22:13:20 2023|\n\t")
	f(1700000000123, "2 on 02: %Y", "2 on 02: 2023")
	f(1700000000123, "%-j %_m %:z %^a %5d %C %u %w %V %U %W %G %g %k %l %P %v %x %X %+", "318 11 +00:00 TUE 00014 20 2 2 46 46 46 2023 23 22 10 pm 14-Nov-2023 11/14/23 22:13:20 Tue Nov 14 22:13:20 UTC 2023")
	f(1700000000123, "%%L %%%L", "%L %123")
	f(-1, "unix", "-0.001")
	f(-1500, "unix", "-1.500")
	f(1700000000123, "unix_ms", "1700000000123")
	if _, err := call(t, "time.format", int64(0), "%Q"); err == nil || !strings.Contains(err.Error(), `unknown conversion "%Q"`) {
		t.Errorf("got error %v", err)
	}
}

// TestStrftimeAgainstDate compares with the host's date command, which uses C's
// strftime.
func TestStrftimeAgainstDate(t *testing.T) {
	date, err := exec.LookPath("date")
	if err != nil {
		t.Skip("no date command")
	}
	const layout = "%a|%A|%b|%B|%c|%C|%d|%D|%e|%F|%g|%G|%h|%H|%I|%j|%k|%l|%m|%M|%n|%N|%p|%P|%r|%R|%s|%S|%t|%T|%u|%U|%V|%w|%W|%x|%X|%y|%Y|%z|%:z|%Z|%%|%-d|%_m|%^a|%5d"
	for _, s := range []int64{0, 1700000000, 951782400, 1704067199, 1709164800, 1609459199, 1230768000} {
		cmd := exec.Command(date, "-u", "-d", "@"+strconv.FormatInt(s, 10), "+"+layout)
		cmd.Env = []string{"LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("date does not take -d: %v", err)
		}
		got, err := call(t, "time.format", s*1000, layout)
		if want := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%d: got %v, %v, want %s", s, got, err, want)
		}
	}
}

// FuzzStrptime: a formatted time is parsed to the same time, and nothing panics.
func FuzzStrptime(f *testing.F) {
	f.Add(int64(1700000000123), "%Y-%m-%dT%H:%M:%S.%f%z", "2023")
	f.Add(int64(0), "%s.%L", "%")
	f.Fuzz(func(t *testing.T, ms int64, layout, other string) {
		_, _ = call(t, "time.parse", other, layout)
		_, _ = call(t, "time.format", ms, layout)
		if ms < 0 || ms > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() {
			return
		}
		for _, full := range []string{"%Y-%m-%d %H:%M:%S.%f %z", "%d/%b/%Y:%I:%M:%S %p.%L", "%s.%N", "%Y %j %T.%f"} {
			s, err := call(t, "time.format", ms, full)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := call(t, "time.parse", s, full); err != nil || got != ms {
				t.Fatalf("%d as %q is %q, parsed %v, %v", ms, full, s, got, err)
			}
		}
	})
}

func TestDurations(t *testing.T) {
	for in, want := range map[string]float64{"1.5h": 5400, "1y": 31536000, "-2d": -172800, "1d12h": 129600, "1w1d1s": 691201, "0": 0} {
		if got, err := call(t, "time.duration", in); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "d", "1d-2h", "-", "1x", "1d1w", "99999999y", "1.5d", strings.Repeat("1", 300)} {
		if v, err := call(t, "time.duration", in); err == nil {
			t.Errorf("%q is %v", in, v)
		}
	}
	if _, err := call(t, "time.format_duration", 1e300); err == nil {
		t.Error("a duration of 1e300 s was formatted")
	}
	if _, err := call(t, "time.format_duration", nan()); err == nil {
		t.Error("a duration of NaN was formatted")
	}
}
