package stdlib

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/timefmt-go"
)

// conversions are the conversions of a layout: those of POSIX and GNU, and %f, %L
// and %N for micro-, milli- and nanoseconds.
//
// Source:
// https://pubs.opengroup.org/onlinepubs/9799919799/functions/strftime.html
const conversions = "%+aAbBcCdDeFfgGhHIjklLmMnNpPrRsStTuUvVwWxXyYzZ"

// modified are conversions with flags, a width or, in an offset, colons.
var modified = regexp.MustCompile(`^%[-_^#0]*([1-9][0-9]*)?([^:LN]|:{1,3}z)$`)

// eachConversion calls f with the parts of a layout in order: literal text with
// the conversion 0, and conversions with their flags and width, such as "%-d".
func eachConversion(layout string, f func(part string, conversion byte)) error {
	for layout != "" {
		i := strings.IndexByte(layout, '%')
		if i != 0 {
			if i < 0 {
				i = len(layout)
			}
			f(layout[:i], 0)
			layout = layout[i:]
			continue
		}
		rest, plain := layout[1:], true
		for rest != "" && strings.IndexByte("-_^#0123456789:", rest[0]) >= 0 {
			rest, plain = rest[1:], false
		}
		if rest == "" {
			return errors.New("the layout ends with an incomplete conversion")
		}
		part := layout[:len(layout)-len(rest)+1]
		if strings.IndexByte(conversions, rest[0]) < 0 || !plain && !modified.MatchString(part) {
			return fmt.Errorf("the layout has an unknown conversion %q", part)
		}
		f(part, rest[0])
		layout = rest[1:]
	}
	return nil
}

// strftime formats a time. timefmt-go copies unknown conversions to the output;
// here they are errors.
func strftime(t time.Time, layout string) (string, error) {
	var b strings.Builder
	b.Grow(len(layout) + 8)
	err := eachConversion(layout, func(part string, c byte) {
		switch c {
		case 'L':
			part = fmt.Sprintf("%03d", t.Nanosecond()/1e6)
		case 'N':
			part = fmt.Sprintf("%09d", t.Nanosecond())
		}
		b.WriteString(part)
	})
	if err != nil {
		return "", fmt.Errorf("cannot format time: %w", err)
	}
	return timefmt.Format(t, b.String()), nil
}

// beyondMicros matches the digits of a fraction that %f does not support.
var beyondMicros = regexp.MustCompile(`([.,]\d{6})\d{1,3}`)

// strptime parses a time. It differs from timefmt-go, which returns 2 March for
// 30 February, UTC for any unknown zone name, and the year 1900 if the layout has
// none. Flags and widths in the layout are ignored.
func strptime(s, layout string, loc *time.Location) (time.Time, error) {
	var b strings.Builder
	b.Grow(len(layout) + 8)
	b.WriteString("%Y")
	s = "1970" + s
	week := false
	err := eachConversion(layout, func(part string, c byte) {
		switch c {
		case 0:
			b.WriteString(part)
			return
		case 'z':
			b.WriteString("%" + strings.TrimLeft(part, "%-_^#0123456789")) // the number of colons matters
			return
		case 'N':
			s = beyondMicros.ReplaceAllString(s, "$1")
			c = 'f'
		case 'L':
			c = 'f'
		case 'G', 'g', 'U', 'V', 'W':
			week = true
		}
		b.WriteByte('%')
		b.WriteByte(c)
	})
	if err != nil {
		return time.Time{}, err
	}
	layout = b.String()
	t, err := timefmt.ParseInLocation(s, layout, loc)
	if err != nil {
		return time.Time{}, errors.Unwrap(err) // the caller adds the text
	}
	if s := t.Unix(); s <= math.MinInt64/1000 || s >= math.MaxInt64/1000 { // the range in milliseconds
		return time.Time{}, errors.New("the number of seconds is out of range")
	}
	name, offset := t.Zone()
	if l := t.Location(); l != loc && l != time.UTC && offset == 0 && !slices.Contains([]string{"", "UTC", "GMT"}, name) {
		return time.Time{}, fmt.Errorf("the UTC offset of the time zone %s is unknown; use %%z or the argument zone", name)
	}
	if t.Day() <= 4 && !week && !dayExists(s, layout) {
		return time.Time{}, errors.New("the day is out of range")
	}
	return t, nil
}

// dayExists reports whether the day in s exists in the month or year in s. A day
// that does not exist is parsed as one of the first days of the next month. If s
// is parsed again with a month of 31 days in a leap year, the result differs.
func dayExists(s, layout string) bool {
	// A leap second may change the day, so both are parsed at midnight.
	a, err := timefmt.ParseInLocation(s+"|00:00:00", layout+"|%T", time.UTC)
	b, err2 := timefmt.ParseInLocation(s+"|00:00:00 2000-01", layout+"|%T %Y-%m", time.UTC)
	return err == nil && err2 == nil && (a.Day() == b.Day() || a.YearDay() == b.YearDay())
}
