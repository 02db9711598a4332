package stdlib

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// directive is one conversion of strftime: how it is written and how it is
// read. Literals between conversions are compared as they are, which is why a
// layout is not translated to Go's: "at 2" would read as a day there.
//
// Source: https://pubs.opengroup.org/onlinepubs/9799919799/functions/strftime.html
type directive struct {
	format string // the Go layout of the conversion alone
	digits int    // it is a number of at most so many digits
	names  []string
	set    func(*fields, int)
}

// fields is what was read of a time.
type fields struct {
	year, month, day, hour, minute, second, nanos int
	yearDay                                       int
	pm, twelve                                    bool
	loc                                           *time.Location
	unix                                          *int64
}

var months, monthsShort = names(12, func(i int) string { return time.Month(i + 1).String() })
var weekdays, weekdaysShort = names(7, func(i int) string { return time.Weekday(i).String() })

func names(n int, name func(int) string) (long, short []string) {
	for i := range n {
		long, short = append(long, name(i)), append(short, name(i)[:3])
	}
	return long, short
}

var directives = map[byte]directive{
	'Y': {format: "2006", digits: 4, set: func(f *fields, v int) { f.year = v }},
	'y': {format: "06", digits: 2, set: func(f *fields, v int) {
		if f.year = 1900 + v; v < 69 { // as POSIX
			f.year = 2000 + v
		}
	}},
	'm': {format: "01", digits: 2, set: func(f *fields, v int) { f.month = v }},
	'd': {format: "02", digits: 2, set: func(f *fields, v int) { f.day = v }},
	'e': {format: "_2", digits: 2, set: func(f *fields, v int) { f.day = v }},
	'j': {format: "002", digits: 3, set: func(f *fields, v int) { f.yearDay = v }},
	'H': {format: "15", digits: 2, set: func(f *fields, v int) { f.hour = v }},
	'I': {format: "03", digits: 2, set: func(f *fields, v int) { f.hour, f.twelve = v, true }},
	'M': {format: "04", digits: 2, set: func(f *fields, v int) { f.minute = v }},
	'S': {format: "05", digits: 2, set: func(f *fields, v int) { f.second = v }},
	'B': {format: "January", names: months, set: func(f *fields, v int) { f.month = v + 1 }},
	'b': {format: "Jan", names: monthsShort, set: func(f *fields, v int) { f.month = v + 1 }},
	'h': {format: "Jan", names: monthsShort, set: func(f *fields, v int) { f.month = v + 1 }},
	'A': {format: "Monday", names: weekdays, set: func(*fields, int) {}},
	'a': {format: "Mon", names: weekdaysShort, set: func(*fields, int) {}},
	'p': {format: "PM", names: []string{"AM", "PM"}, set: func(f *fields, v int) { f.pm = v == 1 }},
	'z': {format: "-0700"},
	'Z': {format: "MST"},
	// Fractions, which POSIX does not have: %f micro-, %L milli-, %N nanoseconds.
	'f': {digits: 6}, 'L': {digits: 3}, 'N': {digits: 9},
	's': {digits: 18},
}

// shorthands are conversions that stand for several.
var shorthands = strings.NewReplacer("%%", "%%", "%T", "%H:%M:%S", "%R", "%H:%M", "%F", "%Y-%m-%d", "%D", "%m/%d/%y",
	"%c", "%a %b %e %H:%M:%S %Y", "%r", "%I:%M:%S %p", "%n", "\n", "%t", "\t")

// conversions calls literal and convert for the parts of a layout in turn.
func conversions(layout string, literal func(string) error, convert func(byte, directive) error) error {
	layout = shorthands.Replace(layout)
	for layout != "" {
		i := strings.IndexByte(layout, '%')
		if i < 0 {
			return literal(layout)
		}
		if i > 0 {
			if err := literal(layout[:i]); err != nil {
				return err
			}
		}
		if layout = layout[i+1:]; layout == "" {
			return errors.New("the layout ends with %")
		}
		c := layout[0]
		layout = layout[1:]
		var err error
		if d, ok := directives[c]; ok {
			err = convert(c, d)
		} else if c == '%' {
			err = literal("%")
		} else {
			err = fmt.Errorf("the layout has an unknown %%%c", c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func strftime(t time.Time, layout string) (string, error) {
	var out strings.Builder
	err := conversions(layout, func(s string) error {
		out.WriteString(s)
		return nil
	}, func(c byte, d directive) error {
		switch c {
		case 'f', 'L', 'N':
			out.WriteString(fmt.Sprintf("%09d", t.Nanosecond())[:d.digits])
		case 's':
			out.WriteString(strconv.FormatInt(t.Unix(), 10))
		default:
			out.WriteString(t.Format(d.format))
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cannot format time: %w", err)
	}
	return out.String(), nil
}

func strptime(s, layout string, loc *time.Location) (time.Time, error) {
	f := fields{year: 1970, month: 1, day: 1, loc: loc}
	err := conversions(layout, func(text string) error {
		rest, ok := strings.CutPrefix(s, text)
		if !ok {
			return fmt.Errorf("at %q it should go on with %q", s, text)
		}
		s = rest
		return nil
	}, func(c byte, d directive) error {
		rest, err := f.read(c, d, s)
		s = rest
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	if s != "" {
		return time.Time{}, fmt.Errorf("%q is left over", s)
	}
	return f.time()
}

// read reads one conversion off s.
func (f *fields) read(c byte, d directive, s string) (rest string, err error) {
	switch {
	case c == 'z':
		return f.readOffset(s)
	case c == 'Z':
		for _, utc := range []string{"UTC", "GMT", "Z"} {
			if rest, ok := strings.CutPrefix(s, utc); ok {
				f.loc = time.UTC
				return rest, nil
			}
		}
		return s, fmt.Errorf("at %q: of zone names only UTC and GMT tell an offset; use %%z or the argument zone", s)
	case d.names != nil:
		for i, n := range d.names {
			if len(s) >= len(n) && strings.EqualFold(s[:len(n)], n) {
				d.set(f, i)
				return s[len(n):], nil
			}
		}
		return s, fmt.Errorf("at %q: %%%c should be one of %s", s, c, strings.Join(d.names, ", "))
	}
	if c == 'e' {
		s = strings.TrimPrefix(s, " ")
	}
	n := 0
	neg := c == 's' && strings.HasPrefix(s, "-")
	if neg {
		s = s[1:]
	}
	for n < len(s) && n < d.digits && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	if n == 0 {
		return s, fmt.Errorf("at %q: %%%c should be a number", s, c)
	}
	v, _ := strconv.ParseInt(s[:n], 10, 64)
	switch c {
	case 'f', 'L', 'N':
		f.nanos, _ = strconv.Atoi((s[:n] + "00000000")[:9])
	case 's':
		if neg {
			v = -v
		}
		f.unix = &v
	default:
		d.set(f, int(v))
	}
	return s[n:], nil
}

func (f *fields) readOffset(s string) (string, error) {
	if rest, ok := strings.CutPrefix(s, "Z"); ok {
		f.loc = time.UTC
		return rest, nil
	}
	for _, layout := range []string{"-07:00", "-0700"} {
		if len(s) >= len(layout) {
			if t, err := time.Parse(layout, s[:len(layout)]); err == nil {
				f.loc = t.Location()
				_, offset := t.Zone()
				f.loc = time.FixedZone("", offset)
				return s[len(layout):], nil
			}
		}
	}
	return s, fmt.Errorf("at %q: %%z should be an offset such as +0100", s)
}

func (f *fields) time() (time.Time, error) {
	if f.unix != nil {
		return time.Unix(*f.unix, int64(f.nanos)), nil
	}
	if f.twelve {
		if f.hour < 1 || f.hour > 12 {
			return time.Time{}, fmt.Errorf("hour %d is out of range", f.hour)
		}
		if f.hour %= 12; f.pm {
			f.hour += 12
		}
	}
	if f.yearDay > 0 {
		f.month, f.day = 1, f.yearDay
	}
	t := time.Date(f.year, time.Month(f.month), f.day, f.hour, f.minute, f.second, f.nanos, f.loc)
	// Date normalises what is out of range; 31 April is a mistake here. A leap
	// second is not.
	day := t.Day() == f.day && t.Month() == time.Month(f.month)
	if f.yearDay > 0 {
		day = t.Year() == f.year
	}
	if f.second == 60 {
		day = f.day >= 1 && f.day <= 31 && f.month >= 1 && f.month <= 12
	}
	if !day || f.hour > 23 || f.minute > 59 || f.second > 60 {
		return time.Time{}, errors.New("a part of it is out of range")
	}
	return t, nil
}
