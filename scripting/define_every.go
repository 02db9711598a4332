package scripting

import (
	"cmp"
	"slices"
	"time"
)

// Every is a timer of a script.
type Every struct {
	Key      string // as written in the script: "30s"
	Interval time.Duration
}

// Limits of the intervals of every and poll.
const (
	minEvery = 100 * time.Millisecond
	// MaxEvery is the longest interval of a timer, or of poll.
	MaxEvery  = 365 * 24 * time.Hour
	maxEverys = 32
)

// defineEvery reads every = { ["30s"] = function(ctx) … end }.
func defineEvery(d *definer, field RawField) {
	m, ok := field.Value.(map[string]any)
	if !ok || len(m) == 0 {
		d.fail(field.Line, "cannot use %s as every: it must be a table of functions by interval", describe(field.Value)).
			Hint = `write every = { ["30s"] = function(ctx) … end }`
		return
	}
	if len(m) > maxEverys {
		d.fail(field.Line, "cannot use %d timers in every: the limit is %d", len(m), maxEverys)
		return
	}
	for _, key := range sortedKeys(m) {
		interval, err := time.ParseDuration(key)
		fn, isFunc := m[key].(Func)
		switch {
		case err != nil:
			d.fail(field.Line, `cannot use %q as an interval of every: it must be a duration such as "30s"`, key)
		case interval < minEvery || interval > MaxEvery:
			d.fail(field.Line, "cannot use %q as an interval of every: it must be between %s and a year", key, minEvery)
		case !isFunc:
			d.fail(cmp.Or(fn.Line, field.Line), "cannot use %s as every[%q]: it must be a function", describe(m[key]), key)
		default:
			d.def.Every = append(d.def.Every, Every{key, interval})
		}
	}
	slices.SortFunc(d.def.Every, func(a, b Every) int { return cmp.Compare(a.Interval, b.Interval) })
}
