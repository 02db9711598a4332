package scripttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// spyChecks are what follows assert.spy(s). Each returns what is wrong, "" for
// nothing.
var spyChecks = []struct {
	name, args, doc string
	check           func(calls []scripting.SpyCall, args []scripting.Value) (string, error)
}{
	{"called", "times?", "It was called, or so many times.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		if len(args) == 0 {
			return unless(len(calls) > 0, "the spy was not called"), nil
		}
		return counted(calls, args, "%s", func(n, want int) bool { return n == want })
	}},
	{"called_with", "…", "One of its calls had these arguments.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		return findCall(calls, args, "called with", func(c scripting.SpyCall) []scripting.Value { return c.Args })
	}},
	{"returned_with", "…", "One of its calls returned this.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		return findCall(calls, args, "returned", func(c scripting.SpyCall) []scripting.Value { return c.Results })
	}},
	{"called_at_least", "times", "It was called so often or more.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		return counted(calls, args, "at least %s", func(n, want int) bool { return n >= want })
	}},
	{"called_at_most", "times", "It was called so often or less.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		return counted(calls, args, "at most %s", func(n, want int) bool { return n <= want })
	}},
	{"called_more_than", "times", "It was called more often.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		return counted(calls, args, "more than %s", func(n, want int) bool { return n > want })
	}},
	{"called_less_than", "times", "It was called less often.", func(calls []scripting.SpyCall, args []scripting.Value) (string, error) {
		return counted(calls, args, "less than %s", func(n, want int) bool { return n < want })
	}},
}

// spied checks the calls of a spy: words are such as was_not_called_with.
func (s *session) spied(words string, calls []scripting.SpyCall, args []scripting.Value) error {
	negated := false
	rest := strings.Split(words, "_")
	for len(rest) > 1 && (slices.Contains(filler, rest[0]) || slices.Contains(negation, rest[0])) {
		negated = negated != slices.Contains(negation, rest[0])
		rest = rest[1:]
	}
	name := strings.Join(rest, "_")
	var names []string
	for _, c := range spyChecks {
		if names = append(names, c.name); c.name != name {
			continue
		}
		wrong, err := c.check(calls, args)
		switch {
		case err != nil:
			return fmt.Errorf("cannot use %s: %w", name, err)
		case wrong != "" && !negated:
			return &Failure{Msg: wrong}
		case wrong == "" && negated:
			return &Failure{Msg: "the spy was " + name + showArgs(args) + callsText(calls, func(c scripting.SpyCall) []scripting.Value { return c.Args })}
		}
		return nil
	}
	hint := config.DidYouMean(name, names)
	if hint == "" {
		hint = "there is " + strings.Join(names, ", ")
	}
	return fmt.Errorf("there is no %s of a spy; %s", name, hint)
}

func unless(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}

func counted(calls []scripting.SpyCall, args []scripting.Value, how string, holds func(n, want int) bool) (string, error) {
	if len(args) != 1 {
		return "", errors.New("it takes a number of calls")
	}
	want, ok := number(args[0])
	if !ok {
		return "", fmt.Errorf("it takes a number of calls, not a %s", typeName(args[0]))
	}
	return unless(holds(len(calls), int(want)), fmt.Sprintf("expected "+how+", got %s", count(int(want), "call"), count(len(calls), "call"))), nil
}

func findCall(calls []scripting.SpyCall, args []scripting.Value, what string, of func(scripting.SpyCall) []scripting.Value) (string, error) {
	for _, c := range calls {
		if slices.EqualFunc(of(c), args, same) {
			return "", nil
		}
	}
	return fmt.Sprintf("the spy was never %s %s%s", what, showArgs(args), callsText(calls, of)), nil
}

func showArgs(args []scripting.Value) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = showFlat(a)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// maxCallsShown is how many calls of a spy a message has.
const maxCallsShown = 10

func callsText(calls []scripting.SpyCall, of func(scripting.SpyCall) []scripting.Value) string {
	var b strings.Builder
	for i, c := range calls {
		if i == maxCallsShown {
			fmt.Fprintf(&b, "\n  … and %d more", len(calls)-i)
			break
		}
		fmt.Fprintf(&b, "\n  call %d: %s", i+1, showArgs(of(c)))
	}
	return b.String()
}
