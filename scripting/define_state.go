package scripting

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/state"
)

// State is a piece of state that a script declares. Create it with NewState.
type State struct {
	state.Decl
	Doc  string
	Line int // where it was declared
}

// StateKinds are the kinds of state in the order of the manual.
var StateKinds = state.Kinds

// StateOptions are the options of weir.state.<kind>, in the order of the
// manual.
var StateOptions = []Param{
	{Name: "max", Kind: KindInt, Optional: true, Doc: "The maximum number of entries; 10,000 by default."},
	{Name: "ttl", Kind: KindString, Optional: true, Doc: `How long an entry is kept after it was written, such as "1h" or a number of seconds; without a limit by default.`, Or: []Param{{Kind: KindNumber}}},
	{Name: "on_full", Kind: KindString, Optional: true, Doc: `The action for a new entry when max is reached: "refuse" (the default) makes it an error, "evict" removes the entry that was written longest ago. An lru always evicts.`},
	{Name: "scope", Kind: KindString, Optional: true, Doc: `The lifetime: "instance" (the default) lasts as long as the node, including reloads; "persistent" stores the state on disk and includes restarts.`},
	{Name: "max_bytes", Kind: KindInt, Optional: true, Doc: `The maximum memory of the entries, such as "8MiB"; 64MiB by default. Each entry counts with its key, its value and 128 bytes.`, Or: []Param{{Kind: KindString}}},
	{Name: "max_value", Kind: KindInt, Optional: true, Doc: `The maximum size of a key with its value; 64KiB by default, at most 32MiB.`, Or: []Param{{Kind: KindString}}},
	{Name: "doc", Kind: KindString, Optional: true, Doc: "A description."},
}

// NewState checks a declaration weir.state.<kind>{…} of a script. Values have
// the same types as in NewArg.
func NewState(kind state.Kind, options map[string]any, line int) (*State, error) {
	s := &State{Line: line, Decl: state.Decl{
		Kind: kind, Max: state.DefaultMax, MaxBytes: state.DefaultMaxBytes, MaxValue: state.DefaultMaxValue,
	}}
	var errs []error
	for _, name := range sortedKeys(options) {
		if err := s.option(name, options[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return s, errors.Join(errs...)
}

func (s *State) option(name string, v any) error {
	wrong := func(want string) error {
		return fmt.Errorf("cannot use %s as %q of weir.state.%s: it must be %s", describe(v), name, s.Kind, want)
	}
	oneOf := func(a, b string) (second bool, err error) {
		if text, ok := v.(string); ok && (text == a || text == b) {
			return text == b, nil
		}
		return false, wrong(fmt.Sprintf("%q or %q", a, b))
	}
	size := func(to *int64) error {
		r, err := (&Arg{Kind: ArgSize}).convert(v)
		if err != nil || r.Int() < 1 {
			return wrong(`a size such as "8MiB"`)
		}
		*to = r.Int()
		return nil
	}
	var err error
	switch name {
	case "max":
		f, ok := v.(float64)
		if !ok || f != math.Trunc(f) || f < 1 || f > state.MostEntries {
			return wrong(fmt.Sprintf("a whole number from 1 to %d", state.MostEntries))
		}
		s.Max = int(f)
	case "ttl":
		r, convErr := (&Arg{Kind: ArgDuration}).convert(v)
		if convErr != nil || r.Int() < int64(time.Millisecond) {
			return wrong(`a duration such as "1h"`)
		}
		s.TTL = time.Duration(r.Int())
	case "max_bytes":
		err = size(&s.MaxBytes)
	case "max_value":
		if err = size(&s.MaxValue); err == nil && s.MaxValue > state.MostValue {
			return wrong(fmt.Sprintf("%s at most", sizeText(state.MostValue)))
		}
	case "on_full":
		s.Evict, err = oneOf("refuse", "evict")
		if err == nil && s.Kind == state.LRU {
			s.Evict = false
			return errors.New(`cannot use "on_full" in weir.state.lru: it always evicts the entry that was not used for longest`)
		}
	case "scope":
		s.Persistent, err = oneOf("instance", "persistent")
	case "doc":
		var ok bool
		if s.Doc, ok = v.(string); !ok {
			return wrong("a string")
		}
	default:
		return fmt.Errorf("cannot use %q in weir.state.%s%s", name, s.Kind, suggestAlternatives(name, Names(StateOptions)))
	}
	return err
}

// String returns the declaration as text: set(max 10000, ttl 1h0m0s).
func (s *State) String() string {
	parts := []string{fmt.Sprintf("max %d", s.Max)}
	if s.TTL > 0 {
		parts = append(parts, "ttl "+s.TTL.String())
	}
	if s.MaxBytes != state.DefaultMaxBytes {
		parts = append(parts, "max_bytes "+sizeText(s.MaxBytes))
	}
	if s.Evict {
		parts = append(parts, "evicting")
	}
	if s.Persistent {
		parts = append(parts, "persistent")
	}
	return string(s.Kind) + "(" + strings.Join(parts, ", ") + ")"
}

func sizeText(n int64) string {
	b, _ := component.Size(n).MarshalText() // it has no errors
	return string(b)
}

// NoStateKind returns the error for an unknown weir.state.<name>.
func NoStateKind(name string) error {
	all := make([]string, len(StateKinds))
	for i, k := range StateKinds {
		all[i] = string(k)
	}
	err := fmt.Errorf("there is no state of the kind %q: there is %s", name, strings.Join(all, ", "))
	if hint := config.DidYouMean(name, all); hint != "" {
		err = fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}

// defineState reads the key state.
func defineState(d *definer, field RawField) {
	m, ok := field.Value.(map[string]any)
	if l, isList := field.Value.([]any); isList && len(l) == 0 {
		ok = true // {} in Lua
	}
	if !ok {
		d.fail(field.Line, "cannot use %s as state: it must be a table such as { seen = weir.state.set{} }", describe(field.Value))
		return
	}
	for _, name := range sortedKeys(m) {
		s, ok := m[name].(*State)
		switch {
		case !ok:
			d.fail(field.Line, "cannot use %s as state %q: write weir.state.map{} or another kind", describe(m[name]), name)
		case !identifier.MatchString(name):
			d.fail(s.Line, "cannot name state %q: it must be an identifier", name)
		default:
			named := *s // one declaration may be used under several names
			named.Name = name
			d.def.State = append(d.def.State, &named)
		}
	}
	slices.SortStableFunc(d.def.State, func(a, b *State) int { return cmp.Compare(a.Line, b.Line) })
}

// defineVersion reads the key version.
func defineVersion(d *definer, field RawField) {
	f, ok := field.Value.(float64)
	if !ok || f != math.Trunc(f) || f < 1 || f > 1<<31 {
		d.fail(field.Line, "cannot use %s as version: it must be a whole number from 1 on, which migrate gets of the state it is to read", describe(field.Value))
		return
	}
	d.def.Version = int64(f)
}
