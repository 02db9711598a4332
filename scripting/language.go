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
	Path string // absolute; "" for a script that ships with weir
	Text string
}

// Error returns an Error at a line of the file. Line 0 means no line.
func (f File) Error(line int, hook string, err error) *Error {
	source, indent := sourceLine(f.Text, line)
	return &Error{File: f.Name, Line: line, Source: source, indent: indent, Hook: hook, Err: err}
}

// Language runs scripts in one language. It is safe for concurrent use.
type Language interface {
	// Name returns the name of the language: lua.
	Name() string
	// Version changes when the behaviour of an unchanged script may change.
	Version() string
	// Extensions returns the extensions of its files, with the dot.
	Extensions() []string
	// Comment returns the lines of the comment at the beginning of text, without
	// comment markers, or nil if there is none. Its first line is the first line
	// of text, even if it is empty, so that line numbers of examples are correct.
	Comment(text string) []string
	// Compile compiles a component's file and the modules that it requires. To get
	// the Definition, it runs the file once, within limits. The error joins an
	// *Error for every error found.
	Compile(f File, env Env) (Program, error)
}

// Env contains what a script may require or import.
type Env struct {
	Modules []*Module // the standard library
	// Require finds a user's module or data file by name.
	Require func(name string) (File, error)
	// Import finds a file that another file imports by a path that begins with ./
	// or ../.
	Import func(from File, path string) (File, error)
	// Probe measures the script; it may be nil.
	Probe *Probe
	// Debug makes the program call a debugger; it may be nil.
	Debug *Debug
}

// Program is a compiled component. It is safe for concurrent use.
type Program interface {
	Definition() *Definition
	// Exprs returns the constant expressions in the script, for checks at load.
	Exprs() []Expr
	// NewVM returns a VM with the program loaded.
	NewVM(h Host) (VM, error)
}

// Expr is a constant expression in a script.
type Expr struct {
	File File
	Line int
	Col  int // starts at 1; 0 if unknown
	Src  string
	Kind expr.Kind
	// Over is the signal of the batches that the expression is for, or 0 if
	// unknown.
	Over batch.Signals
}

// Host is the environment of a VM, for its whole life.
type Host struct {
	// Args are the block's arguments: string, float64, int64, bool, []any,
	// map[string]any, Secret. They must not be modified.
	Args map[string]any
	// Log writes a log line of the script. fields are alternating names and
	// values.
	Log func(level slog.Level, pos, msg string, fields []any)
	// Context contains the functions, constants and tables of ctx, except args and
	// what a language binds itself (log, emit). It belongs to this VM and knows
	// the current call. It may be nil.
	Context *Module
}

// Call is one use of a VM: the hooks of one batch.
type Call struct {
	Time    time.Duration // total limit for all hooks
	Memory  int64         // limit of the VM's memory in bytes; 0: DefaultMemory
	Records int           // in the batch: other limits grow with it
	Emit    int           // maximum number of emitted records
	Now     time.Time     // time of the engine's clock
	// Metrics and Logs receive the records that ctx.emit emits of another signal
	// than the hook's. nil: the script does not send this signal.
	Metrics *view.Metrics
	Logs    *view.Logs
	// Pause is called before a Function that Waits, and Resume after it, on the
	// goroutine of the script. If Pause returns an error, the function is not
	// called and returns this error. Resume reports whether Time, Emit and all
	// other limits except Memory start again from here; it may change Now. Both
	// may be nil.
	Pause  func() error
	Resume func() bool
	// Failed is called with an error that affects the record in a row. It returns
	// whether the record is dropped or kept unchanged.
	Failed func(row int, err *Error) (drop bool)
	// Profile gets samples of the lines that run. nil: nobody profiles the node.
	Profile *Profile
}

// DefaultMemory is the default of script.limits.memory.
const DefaultMemory = 64 << 20

// Hook is a hook that does not get a batch.
type Hook struct {
	Name string // the key in the definition: setup, teardown, every, migrate, poll, run, http
	Key  string // of the function in the hook: "30s" for every, "POST /hook" for http; "" if the hook is a function
	// Args are the arguments before ctx.
	Args []Value
	// Metrics and Logs receive the records that ctx.emit emits. nil: emit is
	// refused.
	Metrics *view.Metrics
	Logs    *view.Logs
}

// VM runs a program's hooks. It is not safe for concurrent use.
type VM interface {
	// Begin starts a call and its limits. c must stay valid until the next Begin.
	Begin(c *Call)
	// Series runs the hook series. The error is an *Error.
	Series(s *view.Series) error
	// Metrics runs the hook metrics, or send of a sink. The error is an *Error.
	Metrics(m *view.Metrics) error
	// Stream runs the hook stream. The error is an *Error.
	Stream(s *view.Stream) error
	// Logs runs the hook logs, or send of a sink. The error is an *Error.
	Logs(m *view.Logs) error
	// Run runs any other hook. It returns the result of a hook that has Args. The
	// error is an *Error.
	Run(h *Hook) (Value, error)
	// End ends the call. An *Error means that the VM uses too much memory and is
	// broken. No data is lost.
	End() error
	// Broken reports whether a limit stopped the VM, so that it must not be used
	// again.
	Broken() bool
	// Position returns the line of the script that called the function that calls
	// Position, such as that of view.Window.Trace. line is 0 if it is unknown.
	Position() (f File, line int)
}

// AsError returns the *Error in err, or a new one if there is none.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Err: err}
}

// CheckExprs compiles the program's constant expressions with arguments, which
// must not contain secrets.
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

// check compiles an expression. If the signal of its batches is unknown, it
// must be valid for at least one signal.
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

// MaxFileSize is the maximum size of a script or module, in bytes.
const MaxFileSize = 256 << 10

// CompileTime is the time limit for compiling a script and its imports. Scripts
// that people write take far less than a second.
const CompileTime = 10 * time.Second

// MaxLogFields is the maximum number of fields in a log line of a script.
const MaxLogFields = 64
