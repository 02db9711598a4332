package node

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/weir-run/weir/scripting"
)

// DefaultProfile and MaxProfile are the usual and the maximum duration of a
// profile.
const (
	DefaultProfile = 10 * time.Second
	MaxProfile     = 5 * time.Minute
)

// serveProfile profiles the calls of the script that begin in the next
// ?seconds=, and serves the profile in the format of pprof. There is one
// profile of a node at a time.
func (c *Component) serveProfile(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	d := DefaultProfile
	if text := r.URL.Query().Get("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		d = time.Duration(n) * time.Second
		if err != nil || n < 1 || n > int(MaxProfile/time.Second) {
			http.Error(w, fmt.Sprintf("seconds must be a number from 1 to %d, not %q", int(MaxProfile/time.Second), text), http.StatusBadRequest)
			return
		}
	}
	p := &scripting.Profile{}
	if !c.mem.profile.CompareAndSwap(nil, p) {
		http.Error(w, fmt.Sprintf("somebody else profiles %s; try again when that has ended", c.opts.ID), http.StatusConflict)
		return
	}
	began := time.Now()
	samples := p.Collect(r.Context(), d)
	c.mem.profile.Store(nil)
	w.Header().Set("Content-Type", "application/octet-stream")
	// An error is the client's: it went away.
	_ = encodeProfile(samples, began, time.Since(began), c.opts.ID, c.script.Name).Write(w)
}

// encodeProfile returns samples in the format of pprof, with the labels node
// and component.
func encodeProfile(samples []scripting.ProfileSample, began time.Time, d time.Duration, node, component string) *profile.Profile {
	period := int64(scripting.ProfilePeriod)
	spent := &profile.ValueType{Type: "time", Unit: "nanoseconds"}
	out := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, spent},
		PeriodType: spent, Period: period, TimeNanos: began.UnixNano(), DurationNanos: int64(d),
		DefaultSampleType: spent.Type,
	}
	functions := map[scripting.Frame]*profile.Function{} // by frames without a line
	locations := map[scripting.Frame]*profile.Location{}
	locate := func(f scripting.Frame) *profile.Location {
		if at := locations[f]; at != nil {
			return at
		}
		key := scripting.Frame{File: f.File, Func: f.Func}
		fn := functions[key]
		if fn == nil {
			fn = &profile.Function{ID: uint64(len(out.Function) + 1), Name: f.Func, SystemName: f.Func, Filename: f.File}
			functions[key], out.Function = fn, append(out.Function, fn)
		}
		at := &profile.Location{ID: uint64(len(out.Location) + 1), Line: []profile.Line{{Function: fn, Line: int64(f.Line)}}}
		locations[f], out.Location = at, append(out.Location, at)
		return at
	}
	for _, s := range samples {
		stack := make([]*profile.Location, len(s.Stack))
		for i, f := range s.Stack {
			stack[i] = locate(f)
		}
		out.Sample = append(out.Sample, &profile.Sample{
			Location: stack, Value: []int64{s.Count, s.Count * period},
			Label: map[string][]string{"node": {node}, "component": {component}},
		})
	}
	return out
}
