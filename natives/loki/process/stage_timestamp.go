package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones for machines that have none installed

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
)

// TimestampArguments are the arguments of stage.timestamp.
type TimestampArguments struct {
	// The extracted value that is the time.
	Source string `alloy:"source,attr"`
	// How it is written: ANSIC, UnixDate, RubyDate, RFC822, RFC822Z, RFC850,
	// RFC1123, RFC1123Z, RFC3339, RFC3339Nano, Unix, UnixMs, UnixUs, UnixNs, or a
	// layout of Go such as "2006-01-02 15:04:05". A layout without a year means
	// the time that is nearest.
	Format string `alloy:"format,attr"`
	// Formats to try when the first does not fit.
	FallbackFormats []string `alloy:"fallback_formats,attr,optional"`
	// The time zone of times that do not say one, such as Europe/Berlin; UTC when
	// it is left out.
	Location *string `alloy:"location,attr,optional"`
	// The action for a line without a valid time: fudge uses the time of the previous
	// line of the stream plus a nanosecond, skip keeps the time of the line.
	ActionOnFailure string `alloy:"action_on_failure,attr,optional"`
	// The action for a line with the same time as the previous line of the stream: fudge
	// adds a nanosecond to keep their order, keep does not change the time.
	ActionOnDuplicateTimestamp string `alloy:"action_on_duplicate_timestamp,attr,optional"`
}

// SetToDefault sets both actions to fudge.
func (a *TimestampArguments) SetToDefault() {
	*a = TimestampArguments{ActionOnFailure: actionFudge, ActionOnDuplicateTimestamp: actionFudge}
}

// Values of action_on_failure and action_on_duplicate_timestamp.
const (
	actionFudge = "fudge"
	actionSkip  = "skip"
	actionKeep  = "keep"
)

// Validate checks that there are a source and a format, and that the location
// exists.
func (a *TimestampArguments) Validate() error {
	var errs []error
	if a.Source == "" {
		errs = append(errs, errors.New("source is empty: name the extracted value that is the time"))
	}
	if a.Format == "" {
		errs = append(errs, errors.New("format is empty: write one such as RFC3339 or a layout of Go"))
	}
	if _, err := a.location(); err != nil {
		errs = append(errs, fmt.Errorf("location: %w", err))
	}
	switch a.ActionOnFailure {
	case "", actionFudge, actionSkip:
	default:
		errs = append(errs, fmt.Errorf("action_on_failure is %q, want fudge or skip", a.ActionOnFailure))
	}
	switch a.ActionOnDuplicateTimestamp {
	case "", actionFudge, actionKeep:
	default:
		errs = append(errs, fmt.Errorf("action_on_duplicate_timestamp is %q, want fudge or keep", a.ActionOnDuplicateTimestamp))
	}
	return errors.Join(errs...)
}

var _ component.Warner = (*TimestampArguments)(nil)

// Warnings names formats that contain no date or time.
func (a *TimestampArguments) Warnings() (ws []string) {
	for i, f := range append([]string{a.Format}, a.FallbackFormats...) {
		attr := "format"
		if i > 0 {
			attr = "fallback_formats"
		}
		switch _, named := layouts[f]; {
		case named || f == "Unix" || f == "UnixMs" || f == "UnixUs" || f == "UnixNs" || f == "":
		case strings.HasPrefix(f, "RFC") || strings.HasPrefix(f, "Unix"):
			ws = append(ws, fmt.Sprintf("%s %q is not one of those that have a name: ANSIC, UnixDate, RubyDate, RFC822, RFC822Z, RFC850, RFC1123, RFC1123Z, RFC3339, RFC3339Nano, Unix, UnixMs, UnixUs and UnixNs", attr, f))
		case oneTime.Format(f) == another.Format(f):
			ws = append(ws, fmt.Sprintf("%s %q fits no time: write how Mon Jan 2 15:04:05 MST 2006 is written, such as \"2006-01-02 15:04:05\"", attr, f))
		}
	}
	return ws
}

// Two times that have no part in common.
var (
	oneTime = time.Date(2001, time.February, 3, 4, 5, 6, 123456789, time.UTC)
	another = time.Date(2012, time.November, 22, 17, 18, 19, 987654321, time.FixedZone("X", 3600))
)

// location returns nil if no location is set.
func (a *TimestampArguments) location() (*time.Location, error) {
	if a.Location == nil {
		return nil, nil
	}
	return time.LoadLocation(*a.Location)
}

// timestampStage sets times.
type timestampStage struct {
	slot        int
	parse       []func(string) (int64, bool)
	onFailure   bool // true for fudge
	onDuplicate bool // true for fudge
	last        *lastTimes
}

func (a *TimestampArguments) compile(c *compiler) (stage, error) {
	s := &timestampStage{slot: c.read(a.Source), onFailure: a.ActionOnFailure != actionSkip, onDuplicate: a.ActionOnDuplicateTimestamp != actionKeep}
	loc, err := a.location()
	if err != nil {
		return nil, err
	}
	for _, f := range append([]string{a.Format}, a.FallbackFormats...) {
		s.parse = append(s.parse, timeParser(f, loc, c.clock))
	}
	s.last = keepState(c, *a, func() *lastTimes { return new(lastTimes) })
	return s, nil
}

func (s *timestampStage) run(_ context.Context, p *pass) {
	if s.onFailure || s.onDuplicate {
		s.last.mu.Lock()
		defer s.last.mu.Unlock()
	}
	for _, r := range p.rows {
		ns, ok := s.time(p.get(s.slot, r))
		if ok && !s.onFailure && !s.onDuplicate {
			p.setTime(r, ns)
			continue
		}
		key := groupKey{p.in.Source, p.stream[r].Hash()}
		t, known := s.last.lastTimeOf(key)
		switch {
		case ok && s.onDuplicate && known && t.parsed == ns:
			t.given++
		case ok:
			t = lastTime{ns, ns}
		case s.onFailure && known:
			t.given++
		default:
			continue
		}
		s.last.put(key, t)
		p.setTime(r, t.given)
	}
}

func (s *timestampStage) time(v value) (ns int64, ok bool) {
	in, ok := v.str()
	if !ok {
		return 0, false
	}
	for _, parse := range s.parse {
		if ns, ok := parse(in); ok {
			return ns, true
		}
	}
	return 0, false
}

// lastTimes are the last times of the streams of each Source, for as many streams
// as fit. Streams that are sending are always among them.
type lastTimes struct {
	mu     sync.Mutex
	recent map[groupKey]lastTime
	older  map[groupKey]lastTime
}

// lastTime is the time that a line contained and the time that the line was
// given.
type lastTime struct{ parsed, given int64 }

// maxLastTimes is the maximum number of recent streams; as many older ones are
// kept.
const maxLastTimes = 10_000

func (l *lastTimes) lastTimeOf(k groupKey) (lastTime, bool) {
	t, ok := l.recent[k]
	if !ok {
		t, ok = l.older[k]
	}
	return t, ok
}

func (l *lastTimes) put(k groupKey, t lastTime) {
	if _, ok := l.recent[k]; !ok && len(l.recent) >= maxLastTimes {
		l.recent, l.older = nil, l.recent
	}
	if l.recent == nil {
		l.recent = map[groupKey]lastTime{}
	}
	l.recent[k] = t
}

// timeParser returns a function that parses times of a format as Unix ns.
func timeParser(format string, loc *time.Location, c clock.Clock) func(string) (int64, bool) {
	unix := func(unit time.Duration) func(string) (int64, bool) {
		return func(s string) (int64, bool) {
			n, err := strconv.ParseInt(s, 10, 64)
			return n * int64(unit), err == nil && inRange(n, int64(unit))
		}
	}
	switch format {
	case "Unix":
		return parseUnix
	case "UnixMs":
		return unix(time.Millisecond)
	case "UnixUs":
		return unix(time.Microsecond)
	case "UnixNs":
		return unix(time.Nanosecond)
	}
	layout, named := layouts[format]
	if !named {
		layout = format
	}
	hasYear := named || strings.Contains(layout, "06") // "2006" contains it too
	return func(s string) (int64, bool) {
		var t time.Time
		var err error
		if loc != nil && !named {
			t, err = time.ParseInLocation(layout, s, loc)
		} else {
			t, err = time.Parse(layout, s)
		}
		if err != nil {
			return 0, false
		}
		if !hasYear {
			if t.Year() != 0 {
				return 0, false
			}
			t = nearestYear(t, c.Now())
		}
		return t.UnixNano(), t.After(firstTime) && t.Before(lastTimeOf)
	}
}

// The range of times in Unix ns.
var firstTime, lastTimeOf = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// layouts are the layouts of formats with a name.
var layouts = map[string]string{
	"ANSIC": time.ANSIC, "UnixDate": time.UnixDate, "RubyDate": time.RubyDate, "RFC822": time.RFC822, "RFC822Z": time.RFC822Z, "RFC850": time.RFC850,
	"RFC1123": time.RFC1123, "RFC1123Z": time.RFC1123Z, "RFC3339": time.RFC3339, "RFC3339Nano": time.RFC3339Nano,
}

func inRange(n, unit int64) bool { return n <= math.MaxInt64/unit && n >= math.MinInt64/unit }

// parseUnix parses seconds, with an optional fraction.
func parseUnix(s string) (int64, bool) {
	whole, frac, fraction := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || !inRange(sec, int64(time.Second)) {
		return 0, false
	}
	if !fraction {
		return sec * int64(time.Second), true
	}
	n, err := strconv.ParseInt(frac, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return sec*int64(time.Second) + int64(float64(n)*math.Pow(10, float64(9-len(frac)))), true
}

// nearestYear sets the year of a time to the current year, or to an adjacent year
// around the turn of the year.
func nearestYear(t, now time.Time) time.Time {
	year := now.Year()
	switch {
	case t.Month() == time.December && now.Month() == time.January:
		year--
	case t.Month() == time.January && now.Month() == time.December:
		year++
	}
	return t.AddDate(year, 0, 0)
}
