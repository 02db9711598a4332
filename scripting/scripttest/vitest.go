package scripttest

import "github.com/weir-run/weir/scripting"

// called is a function's name as the tests at hand write it.
func (s *session) called(name string) string {
	if s.words == scripting.Vitest {
		return scripting.CamelCase(name)
	}
	return name
}

// vitest adds the words that tests in JavaScript are written in. They
// mean the same as in vitest.
//
// Source: https://vitest.dev/api/
func (s *session) vitest(api *scripting.TestAPI) {
	for _, name := range []string{"describe", "suite"} {
		api.Globals = append(api.Globals,
			s.describeFunc(name, "Groups the tests that fn declares. Groups may be nested.", fnOptional, runs),
			s.describeFunc(name+".skip", "Declares tests that are not run.", fnOptional, skipped),
			s.describeFunc(name+".only", "Groups tests, and runs no others of the file.", fnOptional, only),
			s.describeFunc(name+".todo", "Says that there will be tests.", fnOptional, skipped),
			scripting.Function{Name: name + ".each", Doc: "Declares a group for each case: describe.each(cases)(name, fn). In the name, %s, %d, %i, %f, %j and %o are replaced by the arguments of fn, $key by a property of the case, and %# by its number.", Params: []scripting.Param{casesParam}})
	}
	for _, name := range []string{"test", "it"} {
		api.Globals = append(api.Globals,
			s.itFunc(name, "Declares a test, which may be async. Without fn it is pending.", fnOptional, runs),
			s.itFunc(name+".skip", "Declares a test that is not run.", fnOptional, skipped),
			s.itFunc(name+".only", "Declares a test, and runs no others of the file.", fnOptional, only),
			s.itFunc(name+".todo", "Says that there will be a test.", fnOptional, skipped),
			scripting.Function{Name: name + ".each", Doc: "Declares a test for each case: test.each(cases)(name, fn), like describe.each.", Params: []scripting.Param{casesParam}})
	}
	api.Globals = append(api.Globals, s.beforeEach(), s.afterEach(),
		s.aroundFunc("before_all", "Runs fn once, before the first test of the group. Resources that it opens stay open until the end of the file.", func(g *group) *[]scripting.Callback { return &g.beforeAll }),
		s.aroundFunc("after_all", "Runs fn once, after the last test of the group.", func(g *group) *[]scripting.Callback { return &g.afterAll }),
		s.forallFunc(), s.benchFunc())
	api.Matchers, api.Expect, api.Spies, api.Spy = matchers, expects, vi, spyMethods
}

var casesParam = scripting.Param{Name: "cases", Kind: scripting.KindList, Doc: "Lists of arguments, or single arguments."}

func anyParam(name string) scripting.Param {
	return scripting.Param{Name: name, Kind: scripting.KindAny}
}

func optionalParam(name string, kind scripting.Kind) scripting.Param {
	return scripting.Param{Name: name, Kind: kind, Optional: true}
}

// own is a function that a language makes itself.
func own(name, doc string, params ...scripting.Param) scripting.Function {
	return scripting.Function{Name: name, Doc: doc, Params: params}
}

var (
	wantParam   = anyParam("expected")
	numberParam = scripting.Param{Name: "n", Kind: scripting.KindNumber}
	countParam  = scripting.Param{Name: "times", Kind: scripting.KindInt}
	restParam   = scripting.Param{Name: "args", Kind: scripting.KindAny, Rest: true}
)

// matchers are what expect(x) has, in the order of the manual.
var matchers = []scripting.Function{
	own("to_be", "It is this very value (Object.is).", wantParam),
	own("to_equal", "Deep equality, which does not tell a missing key from an undefined one, nor one class from another. A batch is compared with text: the same series with the same values and times, in any order, and the metadata that the text names.", wantParam),
	own("to_strict_equal", "Deep equality of values of one class; a key that is undefined is not a missing one.", wantParam),
	own("to_match_object", "It has all that expected has, and may have more; lists are as long.", wantParam),
	own("to_be_truthy", "An if would take it."),
	own("to_be_falsy", "An if would not take it."),
	own("to_be_defined", "It is not undefined."),
	own("to_be_undefined", "It is undefined."),
	own("to_be_null", "It is null."),
	own("to_be_nullish", "It is undefined or null."),
	own("to_be_na_n", "It is NaN."), // which is toBeNaN in camelCase
	own("to_be_type_of", "Its typeof is this.", scripting.Param{Name: "type", Kind: scripting.KindString}),
	own("to_be_instance_of", "It was made by this class.", anyParam("class")),
	own("to_be_one_of", "It equals one of these.", anyParam("list")),
	own("to_be_greater_than", "It is a greater number.", numberParam),
	own("to_be_greater_than_or_equal", "It is a number as great or greater.", numberParam),
	own("to_be_less_than", "It is a smaller number.", numberParam),
	own("to_be_less_than_or_equal", "It is a number as small or smaller.", numberParam),
	own("to_be_close_to", "It differs from n by less than half a unit of the digit, of which 2 are behind the point by default.", numberParam, optionalParam("digits", scripting.KindInt)),
	own("to_contain", "A string has this part, a list or set this element (===).", anyParam("item")),
	own("to_contain_equal", "One of its elements equals this.", anyParam("item")),
	own("to_have_length", "Its length is this.", numberParam),
	own("to_have_property", `It has what a path of keys leads to, "a.b[0]" or a list of keys; with value, which equals that.`, anyParam("path"), optionalParam("value", scripting.KindAny)),
	own("to_match", "The string has this part, or matches this regular expression.", anyParam("pattern")),
	own("to_satisfy", "fn(x) is true.", fnParam),
	own("to_match_snapshot", "It is the value that the snapshot stores. The first run writes the snapshot into a file in __snapshots__, and --update writes it again. A test can take several; a name tells them apart. A batch is stored in the text format.", optionalParam("name", scripting.KindString)),
	own("to_throw", "The function throws; with expected: what has this part in its message, matches this regular expression, is of this class, or has this error's message.", optionalParam("expected", scripting.KindAny)),
	own("to_throw_error", "As to_throw.", optionalParam("expected", scripting.KindAny)),
	own("to_have_been_called", "The spy was called."),
	own("to_have_been_called_times", "The spy was called so often.", countParam),
	own("to_have_been_called_once", "The spy was called once."),
	own("to_have_been_called_with", "One of the spy's calls had arguments that equal these.", restParam),
	own("to_have_been_called_exactly_once_with", "The spy was called once, with these arguments.", restParam),
	own("to_have_been_last_called_with", "The last call of the spy had these arguments.", restParam),
	own("to_have_been_nth_called_with", "The nth call of the spy, of which the first is 1, had these arguments.", countParam, restParam),
	own("to_have_returned", "A call of the spy returned."),
	own("to_have_returned_times", "So many calls of the spy returned.", countParam),
	own("to_have_returned_with", "A call of the spy returned what equals this.", wantParam),
	own("to_have_last_returned_with", "The last call of the spy returned this.", wantParam),
	own("to_have_nth_returned_with", "The nth call of the spy returned this.", countParam, wantParam),
}

// expects are what expect itself has. The first ones stand for values in what
// is compared with, also as expect.not.
var expects = []scripting.Function{
	own("anything", "Equals all but null and undefined."),
	own("any", "Equals what this class makes: any(Number).", anyParam("class")),
	own("object_containing", "Equals what has all that this has.", anyParam("object")),
	own("array_containing", "Equals a list with all of these elements.", anyParam("list")),
	own("string_containing", "Equals a string with this part.", scripting.Param{Name: "part", Kind: scripting.KindString}),
	own("string_matching", "Equals a string that matches a regular expression, or has this part.", anyParam("pattern")),
	own("close_to", "Equals a number that is as near as to_be_close_to wants it.", numberParam, optionalParam("digits", scripting.KindInt)),
	own("assertions", "The test fails unless so many expectations are checked in it.", countParam),
	own("has_assertions", "The test fails unless an expectation is checked in it."),
	own("unreachable", "Fails: this line must not be reached.", optionalParam("message", scripting.KindString)),
}

// vi makes spies.
var vi = &scripting.Module{
	Name: "vi",
	Doc:  "Spies record the calls of functions of the test and of the modules that it imports. They do not see calls inside a component, which has its own VM. vi.spyOn is undone when the test ends.",
	Funcs: []scripting.Function{
		own("fn", "A spy that calls fn, or returns undefined.", optionalParam("fn", scripting.KindFunction)),
		own("spy_on", "Puts a spy that calls it in the place of an object's function.", anyParam("object"), scripting.Param{Name: "name", Kind: scripting.KindString}),
		own("mocked", "Its argument, which to TypeScript is a spy.", anyParam("x")),
		own("is_mock_function", "Whether it is a spy.", anyParam("x")),
		own("clear_all_mocks", "Forgets the calls of all spies."),
		own("reset_all_mocks", "Forgets the calls of all spies, and what they were told to do."),
		own("restore_all_mocks", "Puts back what spies stand for."),
	},
}

// spyMethods are those of what vi.fn and vi.spyOn return.
var spyMethods = []scripting.Function{
	own("mock_clear", "Forgets the calls."),
	own("mock_reset", "Forgets the calls, and what it was told to do."),
	own("mock_restore", "As mock_reset, and puts back what it stands for."),
	own("mock_implementation", "Calls fn from now on.", fnParam),
	own("mock_implementation_once", "Calls fn next time.", fnParam),
	own("mock_return_value", "Returns this from now on.", anyParam("value")),
	own("mock_return_value_once", "Returns this next time.", anyParam("value")),
	own("mock_resolved_value", "Returns a promise of this from now on.", anyParam("value")),
	own("mock_resolved_value_once", "Returns a promise of this next time.", anyParam("value")),
	own("mock_rejected_value", "Returns a promise that fails from now on.", anyParam("error")),
	own("mock_rejected_value_once", "Returns a promise that fails next time.", anyParam("error")),
	own("mock_name", "The name of the mock in failure messages.", nameParam),
	own("get_mock_name", "The name of the mock in failure messages."),
	own("get_mock_implementation", "The function that it calls."),
}

const (
	noSnapshots = "use toMatchSnapshot, or write what you expect into the test: expect(x).toEqual(…)"
	noTimers    = "the clock of a component stands still: t.advance(\"30s\") sets it forward"
	noModules   = "a component has a VM of its own; give it what is outside with http, env, files and exec of \"weir/test\""
)

// refusedOfVitest are names of vitest's that are not here, and what to do
// instead.
var refusedOfVitest = map[string]string{
	"toMatchInlineSnapshot": noSnapshots, "toMatchFileSnapshot": noSnapshots,
	"toThrowErrorMatchingSnapshot": noSnapshots, "toThrowErrorMatchingInlineSnapshot": noSnapshots,
	"expect.addSnapshotSerializer": noSnapshots,
	"toHaveResolved":               "await what it returned", "toHaveResolvedTimes": "await what it returned", "toHaveResolvedWith": "await what it returned",
	"toHaveLastResolvedWith": "await what it returned", "toHaveNthResolvedWith": "await what it returned",
	"toReturn": "use toHaveReturned", "toReturnWith": "use toHaveReturnedWith", "toBeCalled": "use toHaveBeenCalled",
	"toBeCalledWith": "use toHaveBeenCalledWith", "toBeCalledTimes": "use toHaveBeenCalledTimes",
	"expect.extend": "use toSatisfy(fn)", "expect.soft": "use expect: the first failure ends a test",
	"expect.poll":            noTimers,
	"vi.useFakeTimers":       noTimers,
	"vi.useRealTimers":       noTimers,
	"vi.setSystemTime":       noTimers,
	"vi.advanceTimersByTime": noTimers, "vi.advanceTimersByTimeAsync": noTimers, "vi.runAllTimers": noTimers, "vi.runOnlyPendingTimers": noTimers,
	"vi.waitFor": noTimers, "vi.waitUntil": noTimers,
	"vi.mock": noModules, "vi.doMock": noModules, "vi.unmock": noModules, "vi.importActual": noModules, "vi.importMock": noModules,
	"vi.hoisted": noModules, "vi.resetModules": noModules, "vi.stubGlobal": noModules,
	"vi.stubEnv": "use env of \"weir/test\"", "vi.unstubAllEnvs": "what env of \"weir/test\" says in a test ends with it",
	"it.concurrent": "tests of a file run one after the other", "describe.concurrent": "tests of a file run one after the other",
	"it.fails": "use expect(fn).toThrow", "it.skipIf": "write if (…) it.skip(…)", "it.runIf": "write if (…) it(…)",
	"it.extend": "use beforeEach", "describe.shuffle": "tests run in their order", "describe.sequential": "use describe",
	"onTestFinished": "use afterEach", "onTestFailed": "use afterEach", "assert": "use expect(x).toEqual(…)", "assertType": "use tsc --noEmit",
	"expectTypeOf": "use tsc --noEmit", "beforeAll.each": "use beforeEach", "jest": "use vi",
}
