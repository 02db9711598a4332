package scripttest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// Failure is an assertion that does not hold.
type Failure struct {
	Msg  string
	Diff string // lines that begin with "- " are wanted, with "+ " are there; may be empty
}

func (f *Failure) Error() string {
	if f.Diff == "" {
		return f.Msg
	}
	return f.Msg + "\n" + f.Diff
}

// assertion is one check. Its function returns nil when it holds, else the
// Failure; an error of another kind is a mistake in the call.
type assertion struct {
	name   string
	doc    string
	params []scripting.Param
	// not says the contrary of what failed, for the negated form.
	not   string
	check func(s *session, a []scripting.Value) error
}

func param(name string, kind scripting.Kind) scripting.Param {
	return scripting.Param{Name: name, Kind: kind, Optional: kind == scripting.KindAny}
}

var (
	expected = param("expected", scripting.KindAny)
	actual   = param("actual", scripting.KindAny)
)

// assertions are what follows assert., in the order of the manual.
var assertions = []assertion{
	{"same", `Deep equality. A batch is compared with text: the same series with the same values and times, in any order, and the metadata that the text names.`,
		[]scripting.Param{expected, actual}, "the two are the same", checkSame},
	{"equals", "Equality of numbers, strings, booleans and nil.",
		[]scripting.Param{expected, actual}, "the two are equal", checkEquals},
	{"true", "The value is true.", []scripting.Param{actual}, "it is true", checkIs("true", func(v scripting.Value) bool { return v == true })},
	{"false", "The value is false; nil is not.", []scripting.Param{actual}, "it is false", checkIs("false", func(v scripting.Value) bool { return v == false })},
	{"nil", "The value is nil.", []scripting.Param{actual}, "it is nil", checkIs("nil", func(v scripting.Value) bool { return v == nil })},
	{"truthy", "The value is neither false nor nil.", []scripting.Param{actual}, "it is neither false nor nil",
		checkIs("neither false nor nil", func(v scripting.Value) bool { return v != nil && v != false })},
	{"falsy", "The value is false or nil.", []scripting.Param{actual}, "it is false or nil",
		checkIs("false or nil", func(v scripting.Value) bool { return v == nil || v == false })},
	{"string", "The value is a string.", []scripting.Param{actual}, "it is a string", checkType("string")},
	{"number", "The value is a number.", []scripting.Param{actual}, "it is a number", checkType("number")},
	{"boolean", "The value is a boolean.", []scripting.Param{actual}, "it is a boolean", checkType("boolean")},
	{"table", "The value is a table.", []scripting.Param{actual}, "it is a table", checkType("table")},
	{"function", "The value is a function.", []scripting.Param{actual}, "it is a function", checkType("function")},
	{"near", "The number is within tolerance of the expected one.",
		[]scripting.Param{param("expected", scripting.KindNumber), param("actual", scripting.KindNumber), param("tolerance", scripting.KindNumber)},
		"it is within the tolerance", checkNear},
	{"matches", "The string matches a pattern of the language's own.",
		[]scripting.Param{param("pattern", scripting.KindString), param("actual", scripting.KindString)}, "it matches", checkMatches},
	{"snapshot", "The value is the one that the snapshot stores. The first run writes the snapshot into a file in __snapshots__, and --update writes it again. A test can take several; a name tells them apart. A batch is stored in the text format.",
		[]scripting.Param{actual, {Name: "name", Kind: scripting.KindString, Optional: true}}, "", checkSnapshot},
	{"error", "fn fails; with text, text is a part of its error.",
		[]scripting.Param{param("fn", scripting.KindFunction), {Name: "text", Kind: scripting.KindString, Optional: true}}, "", checkError},
}

// synonyms are other names that people know.
var synonyms = map[string]string{
	"equal": "equals", "eq": "equals", "falsey": "falsy", "errors": "error", "match": "matches", "bool": "boolean",
}

// filler are words that say nothing: assert.is_true, assert.are.same.
var filler = []string{"is", "are", "has", "have", "was", "were", "been", "be", "a", "an"}

// negation are words that turn the assertion around: assert.is_not_nil.
var negation = []string{"not", "no"}

// assertion finds what words mean, such as is_not_nil. more says that they are
// only the beginning of something.
func (s *session) assertion(words string) (f *scripting.Function, more bool, err error) {
	negated := false
	rest := strings.Split(words, "_")
	for len(rest) > 0 && (slices.Contains(filler, rest[0]) || slices.Contains(negation, rest[0])) {
		negated = negated != slices.Contains(negation, rest[0])
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return nil, true, nil
	}
	name := strings.Join(rest, "_")
	if other, ok := synonyms[name]; ok {
		name = other
	}
	i := slices.IndexFunc(assertions, func(a assertion) bool { return a.name == name })
	if i < 0 {
		return nil, false, noAssertion(name)
	}
	a := assertions[i]
	message := scripting.Param{Name: "message", Kind: scripting.KindAny, Optional: true}
	return &scripting.Function{Name: "assert." + words, Doc: a.doc, Params: append(slices.Clone(a.params), message),
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			if negated && a.name == "snapshot" {
				return nil, errors.New("cannot negate assert.snapshot")
			}
			err := a.check(s, args)
			failure, failed := err.(*Failure)
			switch {
			case err != nil && !failed:
				return nil, err
			case failed == negated:
				return nil, nil
			case negated && a.name == "error":
				failure = &Failure{Msg: "the function failed: " + s.lastError}
			case negated:
				failure = &Failure{Msg: a.not + ": " + show(args[len(a.params)-1])}
				if a.name == "near" {
					failure.Msg = a.not + ": " + show(args[1])
				}
			}
			switch m := args[len(args)-1].(type) {
			case nil:
			case string:
				failure.Msg = m + ": " + failure.Msg
			default:
				failure.Msg = show(m) + ": " + failure.Msg
			}
			return nil, failure
		}}, false, nil
}

func noAssertion(name string) error {
	var names []string
	for _, a := range assertions {
		names = append(names, a.name)
	}
	hint := config.DidYouMean(name, names)
	switch {
	case strings.Contains(name, "error"):
		hint = `write assert.has_error(fn, "a part of the message")`
	case hint == "":
		hint = "there is " + strings.Join(names, ", ") + ", each also with is_ and is_not_ before it"
	}
	return fmt.Errorf("there is no assert.%s; %s", name, hint)
}

func checkSame(_ *session, a []scripting.Value) error {
	want, got := a[0], a[1]
	if o, ok := want.(*scripting.Object); ok && o.Type == batchType {
		want, got = got, want // the other way round is meant as well
	}
	if o, ok := got.(*scripting.Object); ok && o.Type == batchType {
		return sameBatch(want, o.Data.(*output))
	}
	if same(a[0], a[1]) {
		return nil
	}
	if textOf(a[0]) != "" && textOf(a[1]) != "" {
		return &Failure{Msg: "the two are not the same", Diff: lineDiff(splitLines(textOf(a[0])), splitLines(textOf(a[1])))}
	}
	w, g := show(a[0]), show(a[1])
	if w == g {
		return &Failure{Msg: fmt.Sprintf("the two are not the same: expected a %s %s, got a %s", typeName(a[0]), w, typeName(a[1]))}
	}
	if !strings.Contains(w+g, "\n") {
		return &Failure{Msg: "the two are not the same", Diff: "- " + w + "\n+ " + g + "\n"}
	}
	return &Failure{Msg: "the two are not the same", Diff: lineDiff(splitLines(showDeep(a[0], "")), splitLines(showDeep(a[1], "")))}
}

// textOf is a string of several lines, else "".
func textOf(v scripting.Value) string {
	if s, ok := v.(string); ok && strings.Contains(s, "\n") {
		return s
	}
	return ""
}

// sameBatch compares an output with text or with another output.
func sameBatch(want scripting.Value, got *output) error {
	var should wanted
	exact := false
	switch w := want.(type) {
	case string:
		var err error
		should, err = got.node.want(w)
		if e, ok := errors.AsType[*batch.SyntaxError](err); ok {
			return &textError{e, got.node.sends.String()}
		} else if err != nil {
			return err
		}
	case *scripting.Object:
		o, ok := w.Data.(*output)
		if !ok {
			return fmt.Errorf("cannot compare a batch with a %s: write the text of the metrics", typeName(want))
		}
		should, exact = o.wanted(), true
	default:
		return fmt.Errorf("cannot compare a batch with a %s: write the text of the metrics", typeName(want))
	}
	if diff := got.difference(should, exact); diff != "" {
		return &Failure{Msg: fmt.Sprintf("other %s came out", got.node.sends), Diff: diff}
	}
	return nil
}

func checkEquals(_ *session, a []scripting.Value) error {
	for _, v := range a[:2] {
		switch v.(type) {
		case *scripting.List, *scripting.Map, *scripting.Object:
			return errors.New("cannot use equals on a table or a batch: it compares single values; write assert.same")
		}
	}
	if same(a[0], a[1]) {
		return nil
	}
	return checkSame(nil, a)
}

func checkIs(what string, holds func(scripting.Value) bool) func(*session, []scripting.Value) error {
	return func(_ *session, a []scripting.Value) error {
		if holds(a[0]) {
			return nil
		}
		return &Failure{Msg: fmt.Sprintf("expected %s, got %s", what, show(a[0]))}
	}
}

func checkType(want string) func(*session, []scripting.Value) error {
	return func(_ *session, a []scripting.Value) error {
		if typeName(a[0]) == want {
			return nil
		}
		return &Failure{Msg: fmt.Sprintf("expected a %s, got %s", want, show(a[0]))}
	}
}

func checkNear(_ *session, a []scripting.Value) error {
	want, got, tolerance := a[0].(float64), a[1].(float64), a[2].(float64)
	if math.Abs(want-got) <= tolerance || want == got {
		return nil
	}
	return &Failure{Msg: fmt.Sprintf("expected %s, give or take %s, got %s", show(want), show(tolerance), show(got))}
}

func checkMatches(s *session, a []scripting.Value) error {
	pattern, text := a[0].(string), a[1].(string)
	ok, err := s.vm.Match(pattern, text)
	if err != nil {
		return fmt.Errorf("cannot use %q as a pattern: %w", pattern, err)
	}
	if ok {
		return nil
	}
	return &Failure{Msg: fmt.Sprintf("expected a match of %q, got %s", pattern, show(text))}
}

func checkError(s *session, a []scripting.Value) error {
	_, err := a[0].(scripting.Callback)()
	if err == nil {
		return &Failure{Msg: "expected an error, the function returned"}
	}
	if s.vm.Broken() {
		return err // a limit: nothing may catch it
	}
	e := scripting.AsError(err)
	s.lastError = e.Err.Error()
	if text, ok := a[1].(string); ok && !strings.Contains(s.lastError, text) {
		return &Failure{Msg: "expected another error", Diff: lineDiff(splitLines(text), splitLines(s.lastError))}
	}
	return nil
}
