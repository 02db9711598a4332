package scripting

import (
	"time"
)

// Tester is a Language in which tests can be written. The functions for tests
// are declared once, in scripting/scripttest; a language binds that table.
type Tester interface {
	Language
	// Words returns the vocabulary of its tests.
	Words() TestWords
	// NewTest compiles a test file and the modules that it requires, in its own
	// VM. The error joins an *Error for every error found.
	NewTest(f File, env Env, api *TestAPI) (TestVM, error)
}

// TestWords is the vocabulary of tests, which users of the language already
// know. The tests are declared and run by the same code.
type TestWords uint8

// The words.
const (
	Busted TestWords = iota // describe it before_each, assert.same
	Vitest                  // describe test beforeEach, expect(x).toEqual
)

// TestAPI contains the functions for tests, in addition to those for scripts.
// Errors of its functions are raised, not returned.
type TestAPI struct {
	// Globals are functions such as describe and it. A function with a dot in its
	// name belongs to another one: it.skip.
	Globals []Function
	// Matchers are the methods of expect(x), and Expect the functions of expect
	// itself, for Vitest. A language implements them itself, because equality
	// depends on the language.
	Matchers, Expect []Function
	// Spies is vi, for Vitest. Spy are the methods of the results of vi.fn. A
	// language implements them itself.
	Spies *Module
	Spy   []Function
	// Same compares two values, one of which is an Object, such as a batch with
	// its text. The error describes the difference.
	Same func(want, got Value) error
	// Fail returns the error of a failed assertion, with the difference of two
	// texts if they differ.
	Fail func(msg, want, got string) error
	// Snapshot compares a value with the next snapshot of the running test. got is an
	// Object or a string, or nil if shown is the text of the value. name is "" or tells
	// the snapshots of a test apart.
	Snapshot func(got Value, shown, name string) error
	// Pend returns the error that ends a test as pending.
	Pend func(why string) error
	// Tables are globals with functions, such as fixtures.
	Tables []*Module
	// Weir is weir.test.
	Weir *Module
	// Assert finds an assertion of Busted by the words after `assert`, in
	// snake_case, such as not_nil. more means that words are missing, because
	// assert.is.same is the assertion "is_same".
	Assert func(words string) (f *Function, more bool, err error)
	// Assertions are the assertions that Assert finds, without prefixes, for docs
	// and types.
	Assertions []Function
	// Spied checks the calls of a spy, which the language implements. words are in
	// snake_case, such as was_called_with. args are the arguments of the check.
	Spied func(words string, calls []SpyCall, args []Value) error
	// Unknown returns a hint for an unknown global. If it is "", the available
	// globals are listed.
	Unknown func(name string, globals []string) string
	// Print receives a line that the test prints.
	Print func(pos, line string)
}

// TestVM runs one test file. It is not safe for concurrent use.
type TestVM interface {
	// Load runs the file, which calls describe and it. The error is an *Error.
	Load(limit time.Duration) error
	// Call runs a function that the file passed to the API. The error is or wraps
	// an *Error.
	Call(fn Callback, limit time.Duration) error
	// Used returns the CPU time of the script in the last Load or Call.
	Used() time.Duration
	// EndTest restores the functions that spies of the test replaced. The error
	// means that the test did not make the checks that it announced.
	EndTest() error
	// Pos returns the position in the file of the current call of the API.
	Pos() (file string, line int)
	// Match reports whether text matches a pattern in the syntax of the language.
	Match(pattern, text string) (bool, error)
	// Broken reports whether a limit stopped the VM, so that it must not be used
	// again.
	Broken() bool
}

// SpyCall is a call of a function that a test watches. A function among its
// values is represented as in the language, and equals itself.
type SpyCall struct{ Args, Results []Value }

// Sequence returns the next value, or false at the end: an iterator for Lua's
// for, an iterable in JS.
type Sequence func() (Value, bool)
