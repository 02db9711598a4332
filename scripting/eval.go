package scripting

import (
	"context"
	"time"
)

// Evaluator is a Language that can run plain files: files that are not
// components. They run in the same kind of VM as a component.
type Evaluator interface {
	Language
	// Plain compiles f and the modules that it requires. The error joins an *Error
	// for every error found.
	Plain(f File, env Env) (Plain, error)
}

// Plain runs a compiled plain file once, in its own VM. The error is an *Error,
// which wraps context.Canceled if ctx ended it.
type Plain func(ctx context.Context, o PlainOptions) error

// PlainOptions are the options for running a plain file.
type PlainOptions struct {
	Args  []string
	Print func(line string)
	// Time is the time limit, in CPU time of the script. Memory is the memory
	// limit in bytes.
	Time   time.Duration
	Memory int64
}
