package node

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
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

// The values of ?format= of a profile.
const (
	formatPprof = "pprof"
	formatJSON  = "json"
)

// LineProfile is the time that a script spent in each of its lines.
type LineProfile struct {
	Seconds float64 `json:"seconds"` // that the profile took
	// Busy is how many seconds of CPU time the script used meanwhile. Several VMs may use
	// more than the profile took.
	Busy    float64        `json:"busy"`
	Version string         `json:"version"` // of the script
	Lines   []ProfiledLine `json:"lines"`   // in which samples were taken, by file and line
}

// ProfiledLine is a line of a script or of a module.
type ProfiledLine struct {
	File string `json:"file"` // its name, as shown to people
	Line int    `json:"line"`
	// Self is the time in the line and in the functions of weir that it calls, and Total
	// also that in the functions of the script. Both are seconds.
	Self  float64 `json:"self"`
	Total float64 `json:"total"`
}

// serveProfile profiles the calls of the script that begin in the next
// ?seconds=, and serves the profile in the format of pprof or by lines. There is one
// profile of a node at a time.
func (c *Component) serveProfile(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	format := cmp.Or(r.URL.Query().Get("format"), formatPprof)
	if format != formatPprof && format != formatJSON {
		http.Error(w, fmt.Sprintf("format must be %s or %s, not %q", formatPprof, formatJSON, format), http.StatusBadRequest)
		return
	}
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
	if format == formatJSON {
		writeJSON(w, c.lineProfile(samples, time.Since(began)))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	// An error is the client's: it went away.
	_ = encodeProfile(samples, began, time.Since(began), c.opts.ID, c.script.Name).Write(w)
}

// lineProfile adds up samples by line.
func (c *Component) lineProfile(samples []scripting.ProfileSample, d time.Duration) LineProfile {
	type position struct {
		file string
		line int
	}
	lines := map[position]*ProfiledLine{}
	out := LineProfile{Seconds: d.Seconds(), Version: c.script.Version, Lines: []ProfiledLine{}}
	for _, s := range samples {
		spent := (time.Duration(s.Count) * scripting.ProfilePeriod).Seconds()
		out.Busy += spent
		seen := map[position]bool{} // a function that calls itself counts once
		for i, f := range s.Stack {
			at := position{f.File, f.Line}
			if lines[at] == nil {
				lines[at] = &ProfiledLine{File: f.File, Line: f.Line}
			}
			if i == 0 {
				lines[at].Self += spent
			}
			if !seen[at] {
				seen[at] = true
				lines[at].Total += spent
			}
		}
	}
	for _, l := range lines {
		out.Lines = append(out.Lines, *l)
	}
	slices.SortFunc(out.Lines, func(a, b ProfiledLine) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out
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
