package scripting

import (
	"errors"
	"log/slog"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/view"
)

// File is a script or a module.
type File struct {
	Name string // as shown to people: scripts/http/paths.lua
	Path string // absolute; "" for one that ships with weir
	Text string
}

// Error makes an Error at a line of the file; 0 is no line.
func (f File) Error(line int, hook string, err error) *Error {
	source, indent := sourceLine(f.Text, line)
	return &Error{File: f.Name, Line: line, Source: source, indent: indent, Hook: hook, Err: err}
}

// Language runs scripts of one kind. It is safe for concurrent use.
type Language interface {
	// Name is what people call it: lua.
	Name() string
	// Version changes when the same script may behave otherwise.
	Version() string
	// Extensions are of its files, with the dot.
	Extensions() []string
	// Comment returns the lines of the comment that text begins with, without
	// comment marks; nil for none. Its first line is that of the text, also when
	// it is empty, so that lines of examples can be found.
	Comment(text string) []string
	// Compile reads a component's file and the modules it requires, and its
	// Definition, for which it runs the file once, within limits. The error
	// joins an *Error for every mistake found.
	Compile(f File, env Env) (Program, error)
}

// Env is what a script may require.
type Env struct {
	Modules []*Module // the standard library
	// Require finds a module or a data file of the user's by name.
	Require func(name string) (File, error)
	// Import finds what a file imports by a path that begins with ./ or ../.
	Import func(from File, path string) (File, error)
	// Probe measures the script; nil: nothing does.
	Probe *Probe
}

// Program is a compiled component. It is safe for concurrent use.
type Program interface {
	Definition() *Definition
	// Exprs are the constant expressions in the script, for checks at load.
	Exprs() []Expr
	// NewVM returns a VM with the program loaded.
	NewVM(h Host) (VM, error)
}

// Expr is a constant expression in a script.
type Expr struct {
	File File
	Line int
	Col  int // from 1; 0: not known
	Src  string
	Kind expr.Kind
	// Over is the signal of the batches that it is for, 0 when that is not known.
	Over batch.Signals
}

// Host is what a VM gets from its component, for its whole life.
type Host struct {
	// Args are the block's arguments: string, float64, int64, bool, []any,
	// map[string]any, Secret. They are not written to.
	Args map[string]any
	// Log writes a line of the script's. fields are alternating names and values.
	Log func(level slog.Level, pos, msg string, fields []any)
	// Context is what ctx has beside args and what a language binds itself (log,
	// emit): functions, constants, tables. It is the VM's own and knows the call
	// at hand. nil: nothing.
	Context *Module
}

// Call is one use of a VM: the hooks of one batch.
type Call struct {
	Time    time.Duration // that hooks may take together
	Memory  int64         // that the VM may hold, in bytes; 0: DefaultMemory
	Records int           // of the batch: other limits grow with it
	Emit    int           // records that may be emitted
	Now     time.Time     // of the engine's clock
	// Metrics and Logs are where ctx.emit puts records that are not of the hook's
	// signal; nil: the script sends none.
	Metrics *view.Metrics
	Logs    *view.Logs
	// Pause is called before a Function that Waits, and Resume after it, where the
	// script runs. An error of Pause is the function's, which is not called.
	// Resume says whether Time, Emit and whatever else bounds the call count anew
	// from here, but for Memory; Now may be another. nil: neither.
	Pause  func() error
	Resume func() bool
	// Failed is told of an error that costs the record in a row; it says whether
	// the record is dropped or stays as it was.
	Failed func(row int, err *Error) (drop bool)
}

// DefaultMemory is what a VM may hold unless script.limits.memory says otherwise.
const DefaultMemory = 64 << 20

// Hook is a hook that gets no batch.
type Hook struct {
	Name string // the key of the definition: setup, teardown, every, migrate, poll, run, http
	Key  string // of the function in it, for every "30s", for http "POST /hook"; "" when it is the function
	// Args are what it is called with before ctx.
	Args []Value
	// Metrics and Logs are where ctx.emit puts records; nil: it is refused.
	Metrics *view.Metrics
	Logs    *view.Logs
}

// VM runs a program's hooks. Not safe for concurrent use.
type VM interface {
	// Begin starts a call: limits count from here. c is valid until the next Begin.
	Begin(c *Call)
	// Series runs the hook series. The error is an *Error.
	Series(s *view.Series) error
	// Metrics runs the hook metrics, or send of a sink. The error is an *Error.
	Metrics(m *view.Metrics) error
	// Stream runs the hook stream. The error is an *Error.
	Stream(s *view.Stream) error
	// Logs runs the hook logs, or send of a sink. The error is an *Error.
	Logs(m *view.Logs) error
	// Run runs another hook, and returns what one that has Args returned. The
	// error is an *Error.
	Run(h *Hook) (Value, error)
	// End ends the call. The error is an *Error: the VM holds too much, and is
	// broken; it costs no data.
	End() error
	// Broken reports whether the VM must not be used again: a limit stopped it.
	Broken() bool
}

// AsError returns the *Error in err, making one when there is none.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Err: err}
}

// CheckExprs compiles the program's constant expressions against arguments, of
// which none is a secret.
func CheckExprs(p Program, args map[string]any) error {
	gen := view.NewCache(view.Options{Args: args})
	var errs []error
	for _, e := range p.Exprs() {
		if err := e.check(gen, p.Definition()); err != nil {
			wrong := e.File.Error(e.Line, HookLoad, err)
			wrong.Col = e.Col
			errs = append(errs, wrong)
		}
	}
	return errors.Join(errs...)
}

// check compiles an expression. Of one for either signal it is not known which
// batches it will meet; then it must be right over one.
func (e Expr) check(gen *view.Cache, def *Definition) error {
	over := e.Over
	if over == 0 {
		over = def.Accepts()
	}
	if over == batch.SignalLogs && e.Kind == expr.Bool {
		return gen.CheckLogs(e.Src)
	}
	err := gen.Check(e.Src, e.Kind)
	if err != nil && over&batch.SignalLogs != 0 && e.Kind == expr.Bool && gen.CheckLogs(e.Src) == nil {
		return nil
	}
	return err
}

func hasSecret(v any) bool {
	switch v := v.(type) {
	case Secret:
		return true
	case []any:
		for _, e := range v {
			if hasSecret(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if hasSecret(e) {
				return true
			}
		}
	}
	return false
}

// MaxFileSize is how large a script or module may be, in bytes.
const MaxFileSize = 256 << 10

// CompileTime is how long a script and what it imports may take to compile. Any
// that people write takes far less than a second.
const CompileTime = 10 * time.Second

// MaxLogFields is how many fields a line has that a script logs.
const MaxLogFields = 64
