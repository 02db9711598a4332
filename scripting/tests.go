package scripting

import (
	"time"
)

// Tester is a Language in which tests can be written, too. What a test may
// call is declared once, in scripting/scripttest; a language binds that table.
type Tester interface {
	Language
	// Words are those that its tests are written in.
	Words() TestWords
	// NewTest compiles a test file and what it requires, in a VM of its own.
	// The error joins an *Error for every mistake found.
	NewTest(f File, env Env, api *TestAPI) (TestVM, error)
}

// TestWords are the words that tests are written in, which its users know: the
// same tests, declared and run by the same code.
type TestWords uint8

// The words.
const (
	Busted TestWords = iota // describe it before_each, assert.same
	Vitest                  // describe test beforeEach, expect(x).toEqual
)

// TestAPI is what a test file has beside what a script has. Errors of its
// functions are raised, not returned.
type TestAPI struct {
	// Globals are functions such as describe and it. One whose name has a dot
	// belongs to another: it.skip.
	Globals []Function
	// Matchers are what expect(x) has, and Expect what expect itself has, of Vitest.
	// A language makes them itself, for equality is its own.
	Matchers, Expect []Function
	// Spies is vi, of Vitest; Spy are the methods of what vi.fn returns. A language
	// makes them itself.
	Spies *Module
	Spy   []Function
	// Same compares two values of which one is an Object, such as a batch with its
	// text; the error says what differs.
	Same func(want, got Value) error
	// Fail returns the error of an assertion that does not hold, with the
	// difference of two texts; the same text makes none.
	Fail func(msg, want, got string) error
	// Pend returns the error that ends a test as pending.
	Pend func(why string) error
	// Tables are globals by their name, such as fixtures.
	Tables []*Module
	// Weir is weir.test.
	Weir *Module
	// Assert finds, of Busted, what follows `assert`: words in snake_case, not_nil. more
	// says that words are missing, so that assert.is.same is assert "is_same".
	Assert func(words string) (f *Function, more bool, err error)
	// Assertions are what Assert finds, without words before their names, for
	// docs and types.
	Assertions []Function
	// Spied checks the calls of a spy, which is a language's own: words in
	// snake_case such as was_called_with, and the arguments of the check.
	Spied func(words string, calls []SpyCall, args []Value) error
	// Unknown says what to do about a global that is not there; "" for nothing
	// better than a list of those that are.
	Unknown func(name string, globals []string) string
	// Print takes a line that the test prints.
	Print func(pos, line string)
}

// TestVM runs one test file. Not safe for concurrent use.
type TestVM interface {
	// Load runs the file, which calls describe and it. The error is an *Error.
	Load(limit time.Duration) error
	// Call runs a function that the file gave to the API. The error is an
	// *Error, or what wraps one.
	Call(fn Callback, limit time.Duration) error
	// Used is what the last Load or Call took, in time of the script.
	Used() time.Duration
	// EndTest puts back what spies of the test that ends stand for. The error says
	// that the test did not check what it said that it would.
	EndTest() error
	// Pos is where the file is that calls the API at the moment, file:line.
	Pos() (file string, line int)
	// Match asks whether text matches a pattern of the language's own kind.
	Match(pattern, text string) (bool, error)
	// Broken reports whether the VM must not be used again: a limit stopped it.
	Broken() bool
}

// SpyCall is one call of a function that a test watches. A function among its
// values is what it is to the language, and equal to itself.
type SpyCall struct{ Args, Results []Value }

// Sequence gives values one by one, then false: an iterator for Lua's for, an
// iterable in JS.
type Sequence func() (Value, bool)
