package stdlib

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	// Scripts return the same results on hosts without time zone files.
	_ "time/tzdata"

	"github.com/weir-run/weir/scripting"
)

const maxLayout = 256

// layouts maps names to layouts.
var layouts = map[string]string{
	"rfc3339":  time.RFC3339Nano,
	"rfc1123":  time.RFC1123,
	"rfc1123z": time.RFC1123Z,
	"rfc822":   time.RFC822,
	"rfc822z":  time.RFC822Z,
	"rfc850":   time.RFC850,
	"ansic":    time.ANSIC,
	"date":     time.DateOnly,
	"datetime": time.DateTime,
}

func timeModule() *scripting.Module {
	zones := newCache[*time.Location](1000)
	zone := func(v scripting.Value) (*time.Location, error) {
		if v == nil {
			return time.UTC, nil
		}
		return zones.get(v.(string), loadZone)
	}
	layout := scripting.Param{
		Name: "layout", Kind: scripting.KindString, Optional: true,
		Doc: "A Go layout (2006-01-02 15:04:05), a strftime layout (with %; %f, %L and %N are micro-, milli- and nanoseconds), or a name: rfc3339 (the default), rfc1123, rfc1123z, rfc822, rfc822z, rfc850, ansic, date, datetime, unix (seconds), unix_ms.",
	}
	zoneParam := scripting.Param{
		Name: "zone", Kind: scripting.KindString, Optional: true,
		Doc: "A time zone such as Europe/Berlin, for times without a time zone; UTC by default.",
	}
	const ms = 1700000000123 // 2023-11-14T22:13:20.123Z
	return &scripting.Module{
		Name: "time",
		Doc:  "Times in Unix milliseconds and durations in seconds. For the current time, use ctx.now.",
		Funcs: []scripting.Function{
			{
				Name:   "parse",
				Doc:    "Parses a time. Fractions of a millisecond are truncated.",
				Params: []scripting.Param{text("s", "The time."), layout, zoneParam},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "Unix milliseconds.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					loc, err := zone(a[2])
					if err != nil {
						return nil, err
					}
					return parseTime(a[0].(string), a[1], loc)
				},
				Examples: []scripting.FunctionExample{
					ex(int64(ms), "2023-11-14T22:13:20.123Z"),
					ex(int64(1700000000000), "14/Nov/2023:22:13:20 +0000", "02/Jan/2006:15:04:05 -0700"),
					ex(int64(1700000000000), "14/Nov/2023:22:13:20 +0000", "%d/%b/%Y:%H:%M:%S %z"),
					ex(int64(1699996400000), "2023-11-14 22:13:20", "datetime", "Europe/Berlin"),
					ex(int64(1700000000500), "1700000000.5", "unix"),
					{Args: []scripting.Value{"yesterday"}, Err: "cannot parse time"},
					{Args: []scripting.Value{"2023-11-14", "date", "Mars/Base"}, Err: "unknown time zone"},
				},
			},
			{
				Name: "format",
				Doc:  "Formats a time.",
				Params: []scripting.Param{
					{Name: "ms", Kind: scripting.KindInt, Doc: "Unix milliseconds."}, layout, zoneParam,
				},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The text.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					loc, err := zone(a[2])
					if err != nil {
						return nil, err
					}
					return formatTime(a[0].(int64), a[1], loc)
				},
				Examples: []scripting.FunctionExample{
					ex("2023-11-14T22:13:20.123Z", int64(ms)),
					ex("2023-11-14", int64(ms), "%Y-%m-%d"),
					ex("Tue 23:13", int64(ms), "Mon 15:04", "Europe/Berlin"),
					ex("1700000000.123", int64(ms), "unix"),
				},
			},
			{
				Name:   "duration",
				Doc:    "Parses a duration such as 1h30m, 250ms, 2d or 1w.",
				Params: []scripting.Param{text("s", "The duration.")},
				Result: scripting.Result{Kind: scripting.KindNumber, Doc: "Seconds.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return parseDuration(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(5400.0, "1h30m"), ex(0.25, "250ms"), ex(172800.0, "2d"), ex(-1.5, "-1.5s"),
					{Args: []scripting.Value{"soon"}, Err: "cannot parse duration"},
				},
			},
			{
				Name:   "format_duration",
				Doc:    "Formats a duration.",
				Params: []scripting.Param{{Name: "seconds", Kind: scripting.KindNumber, Doc: "The duration in seconds."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The text, such as 1h30m0s.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					s := a[0].(float64)
					if math.IsNaN(s) || math.Abs(s) > math.MaxInt64/1e9 {
						return nil, fmt.Errorf("cannot format a duration of %v s", s)
					}
					return time.Duration(math.Round(s * 1e9)).String(), nil
				},
				Examples: []scripting.FunctionExample{ex("1h30m0s", 5400.0), ex("250ms", 0.25)},
			},
		},
	}
}

func loadZone(name string) (*time.Location, error) {
	// "Local" and "" would depend on the host; package time refuses file system
	// paths.
	if name == "Local" || name == "" {
		return nil, fmt.Errorf("cannot use time zone %q: write a name such as UTC or Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("cannot use time zone %q: unknown time zone", name)
	}
	return loc, nil
}

func layoutOf(v scripting.Value) (string, error) {
	if v == nil {
		return time.RFC3339Nano, nil
	}
	l := v.(string)
	if len(l) > maxLayout {
		return "", fmt.Errorf("cannot use a layout of %d bytes: the limit is %d", len(l), maxLayout)
	}
	if named, ok := layouts[l]; ok {
		return named, nil
	}
	return l, nil
}

func parseTime(s string, v scripting.Value, loc *time.Location) (scripting.Value, error) {
	layout, err := layoutOf(v)
	if err != nil {
		return nil, err
	}
	if len(s) > maxLayout {
		return nil, fmt.Errorf("cannot parse time: it is longer than %d bytes", maxLayout)
	}
	var t time.Time
	switch {
	case layout == "unix" || layout == "unix_ms":
		return parseUnix(s, layout)
	case strings.Contains(layout, "%"):
		t, err = strptime(s, layout, loc)
	default:
		t, err = time.ParseInLocation(layout, s, loc)
	}
	if err != nil {
		if pe, ok := errors.AsType[*time.ParseError](err); ok {
			err = fmt.Errorf("it does not fit %q%s", layout, pe.Message)
		}
		return nil, fmt.Errorf("cannot parse time %q: %w", s, err)
	}
	return t.UnixMilli(), nil
}

// parseUnix parses seconds or milliseconds. It moves the decimal point instead of
// multiplying: with a float64, 1700000000.001 would become another millisecond.
func parseUnix(s, unit string) (scripting.Value, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	digits := 0
	if unit == "unix" {
		digits = 3
	}
	shifted := (fraction + "000")[:digits]
	ms, err := strconv.ParseInt(whole+shifted, 10, 64)
	if err != nil || strings.Trim(fraction, "0123456789") != "" || whole == "" || whole == "-" {
		return nil, fmt.Errorf("cannot parse time %q: it is not a number of %s", s, map[string]string{"unix": "seconds", "unix_ms": "milliseconds"}[unit])
	}
	return ms, nil
}

func formatTime(ms int64, v scripting.Value, loc *time.Location) (scripting.Value, error) {
	layout, err := layoutOf(v)
	if err != nil {
		return nil, err
	}
	t := time.UnixMilli(ms).In(loc)
	switch {
	case layout == "unix_ms":
		return strconv.FormatInt(ms, 10), nil
	case layout == "unix":
		sign, abs := "", uint64(ms)
		if ms < 0 {
			sign, abs = "-", -abs
		}
		if abs%1000 == 0 {
			return sign + strconv.FormatUint(abs/1000, 10), nil
		}
		return fmt.Sprintf("%s%d.%03d", sign, abs/1000, abs%1000), nil
	case strings.Contains(layout, "%"):
		return strftime(t, layout)
	}
	return t.Format(layout), nil
}

func parseDuration(s string) (scripting.Value, error) {
	if len(s) > maxLayout {
		return nil, fmt.Errorf("cannot parse duration: it is longer than %d bytes", maxLayout)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		if d, err = longDuration(s); err != nil {
			return nil, fmt.Errorf("cannot parse duration %q: write a duration such as 1h30m", s)
		}
	}
	return d.Seconds(), nil
}

// longDuration parses a duration with years, weeks and days in front of the units
// that Go supports. A day has 24 hours and a year 365 days, as in Prometheus.
func longDuration(s string) (time.Duration, error) {
	s, neg := strings.CutPrefix(s, "-")
	if s == "" {
		return 0, errors.New("empty")
	}
	days := 0.0
	for _, u := range []struct {
		unit string
		days float64
	}{{"y", 365}, {"w", 7}, {"d", 1}} {
		n, rest, ok := strings.Cut(s, u.unit)
		if !ok {
			continue
		}
		v, err := strconv.ParseUint(n, 10, 32)
		if err != nil {
			return 0, err
		}
		days += float64(v) * u.days
		s = rest
	}
	rest := time.Duration(0)
	if s != "" {
		var err error
		if rest, err = time.ParseDuration(s); err != nil {
			return 0, err
		}
	}
	if days > 100*365 || rest < 0 {
		return 0, errors.New("out of range")
	}
	d := time.Duration(days)*24*time.Hour + rest
	if neg {
		d = -d
	}
	return d, nil
}
