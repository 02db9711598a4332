package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// TestFunctionsOfSend holds that what a sink says of a batch is kept for the host, and
// that no other hook can say it.
func TestFunctionsOfSend(t *testing.T) {
	s := open(t, &scripting.Definition{Kind: scripting.Sink}, host.AccessOptions{})
	for name, arg := range map[string]scripting.Value{"retry": nil, "reject": "why", "attempt": nil, "batch_id": nil} {
		args := []scripting.Value{arg}
		if arg == nil {
			args = nil
		}
		_, err := s.do(t, name, args...)
		fails(t, name, err, "cannot call ctx."+name+": only the hook send of a weir.sink can use it")
		s.outside = true
		_, err = s.do(t, name, args...)
		fails(t, name+" outside of hooks", err, "only the hook send of a weir.sink can use it")
		s.outside = false
	}

	d := &host.Delivery{Attempt: 3, ID: "abc"}
	s.call.Delivery = d
	if n, err := s.do(t, "attempt"); n != int64(3) || err != nil {
		t.Errorf("got attempt %v, %v", n, err)
	}
	if id, err := s.do(t, "batch_id"); id != "abc" || err != nil {
		t.Errorf("got ID %v, %v", id, err)
	}
	after := func(how *scripting.Map, want time.Duration) {
		t.Helper()
		*d = host.Delivery{}
		if _, err := s.do(t, "retry", how); err != nil || !d.Retry || d.After != want {
			t.Errorf("got %+v, %v, want %s", d, err, want)
		}
	}
	after(table(), 0)
	after(table("after", "1m30s"), 90*time.Second)
	after(table("after", 2.5), 2500*time.Millisecond)
	after(table("after", -1.0), 0)
	after(table("after", 1e300), 1e6*time.Second)
	for text, want := range map[string]string{"-1s": "has a negative after", "soon": `has the after "soon": it must be a duration such as "5s", or a number of seconds`, "5": `has the after "5"`} {
		*d = host.Delivery{}
		_, err := s.do(t, "retry", table("after", text))
		if fails(t, text, err, want); d.Retry {
			t.Errorf("%s: it is sent again", text)
		}
	}

	*d = host.Delivery{}
	for _, args := range [][]scripting.Value{{scripting.Row(2), "bad"}, {scripting.Row(0)}, {strings.Repeat("x", 5000)}} {
		if _, err := s.do(t, "reject", args...); err != nil {
			t.Error(err)
		}
	}
	if len(d.Rejected) != 2 || d.Rejected[2] != "rejected by the script: bad" || d.Rejected[0] != "rejected by the script: " || len(d.RejectAll) != len("rejected by the script: ")+1000 {
		t.Errorf("got %+v", d)
	}
	_, err := s.do(t, "reject", 5.0)
	fails(t, "a number", err, "must be a record of the batch, or the reason, not a number")
}

// TestContextByKind holds that ctx has what belongs to the kind of a component, and
// that it says why the rest is missing.
func TestContextByKind(t *testing.T) {
	f := func(def *scripting.Definition, want string, absent map[string]string) {
		t.Helper()
		s := open(t, def, host.AccessOptions{})
		var names []string
		for _, fn := range s.ctx.Funcs {
			if fn.Name == "export" || fn.Name == "flush" {
				names = append(names, fn.Name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", def.Kind, got, want)
		}
		for name, why := range absent {
			if got := s.ctx.Absent(name); got != why {
				t.Errorf("%s: %s is missing: got %q, want %q", def.Kind, name, got, why)
			}
		}
	}
	f(transform(), "", map[string]string{
		"export": "cannot use ctx.export: only a weir.source can export values; a transform exports only its receiver",
		"flush":  "cannot use ctx.flush: only the hook run of a weir.source can use it",
		"exec":   `cannot use ctx.exec: the script does not declare it; write needs = { exec = { "NAME" } } in its definition, and grant it in the block's script.allow`,
		"other":  "",
	})
	f(&scripting.Definition{Kind: scripting.Source, Poll: true}, "", map[string]string{
		"export": "cannot use ctx.export: the definition declares no exports; write exports = { targets = weir.arg.targets {} }",
		"flush":  "cannot use ctx.flush: only the hook run needs it; records emitted by other hooks are sent when the hook returns",
	})
	f(&scripting.Definition{Kind: scripting.Source, Run: true, Exports: []*scripting.Arg{{Name: "n"}}}, "export flush", nil)

	// A script with several hooks has flush in all of them, and uses it in run alone.
	s := open(t, &scripting.Definition{Kind: scripting.Source, Run: true, Poll: true}, host.AccessOptions{})
	_, err := s.do(t, "flush")
	fails(t, "flush in poll", err, "cannot call flush: only the hook run can use it")
	flushed := 0
	s.call.Flush = func() error { flushed++; return nil }
	if _, err := s.do(t, "flush"); err != nil || flushed != 1 {
		t.Errorf("flushed %d times: %v", flushed, err)
	}
}

// TestManualHasAll holds that the manual of ctx has the functions of all kinds and all
// that scripts can be granted.
func TestManualHasAll(t *testing.T) {
	m := host.Context()
	for _, name := range strings.Fields("now sleep health retry reject attempt batch_id secret read exec export flush") {
		if f, ok := m.Func(name); !ok || f.Doc == "" || len(f.Uses) == 0 {
			t.Errorf("%s is not documented", name)
		}
	}
	var tables []string
	for _, part := range m.Tables {
		tables = append(tables, part.Name)
	}
	if got := strings.Join(tables, " "); got != "state metrics http env" {
		t.Errorf("got tables %s", got)
	}
}

// TestSleepIsBounded holds which times ctx.sleep takes, and that the hook run sleeps
// by itself.
func TestSleepIsBounded(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{})
	for _, d := range []float64{-1, 1e6, 1e300} {
		_, err := s.do(t, "sleep", d)
		fails(t, "sleep", err, "cannot sleep")
	}
	for _, d := range []float64{0, 1.5} {
		if _, err := s.do(t, "sleep", d); err != nil {
			t.Error(err)
		}
	}
	if len(s.slept) != 2 || s.slept[1] != 1500*time.Millisecond {
		t.Errorf("slept %v", s.slept)
	}
	var slept time.Duration
	s.call.Sleep = func(d time.Duration) error { slept = d; return nil }
	if _, err := s.do(t, "sleep", 999_999.0); err != nil || slept != 999_999*time.Second || len(s.slept) != 2 {
		t.Errorf("slept %v, %v: %v", slept, s.slept, err)
	}
}

// TestHealthOfScripts holds how the host shows what ctx.health says.
func TestHealthOfScripts(t *testing.T) {
	s := open(t, transform(), host.AccessOptions{})
	for _, args := range [][]scripting.Value{{"healthy"}, {"degraded", "half"}, {"unhealthy", strings.Repeat("x", 2000)}} {
		if _, err := s.do(t, "health", args...); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.do(t, "health", "ill")
	fails(t, "another state", err, `must be "healthy", "degraded" or "unhealthy"`)
	want := []component.Health{{State: component.Healthy, Time: epoch}, {State: component.Healthy, Message: "degraded: half", Time: epoch}, {State: component.Unhealthy, Message: strings.Repeat("x", 1000), Time: epoch}}
	if len(s.shown) != len(want) {
		t.Fatalf("got %+v", s.shown)
	}
	for i := range want {
		if s.shown[i] != want[i] {
			t.Errorf("got %+v, want %+v", s.shown[i], want[i])
		}
	}
}
