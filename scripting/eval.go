package scripting

import (
	"context"
	"time"
)

// Evaluator is a Language whose plain files can be run: files that are no
// components. They get the VM that a component gets.
type Evaluator interface {
	Language
	// Plain compiles f and what it requires. The error joins an *Error for every
	// mistake found.
	Plain(f File, env Env) (Plain, error)
}

// Plain runs a compiled plain file once, in a VM of its own. The error is an
// *Error, which wraps context.Canceled when ctx ended it.
type Plain func(ctx context.Context, o PlainOptions) error

// PlainOptions are what a plain file gets.
type PlainOptions struct {
	Args  []string
	Print func(line string)
	// Time is what the file may take, in time of the script; Memory what it may
	// hold, in bytes.
	Time   time.Duration
	Memory int64
}
