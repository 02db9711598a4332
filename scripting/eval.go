package scripting

import (
	"context"
	"fmt"
	"path/filepath"
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

// NewPlain compiles a plain file: name is where it lies, "-" for a text that
// lies nowhere. The modules it requires are in o.Modules or below lib in
// o.UserDir.
func NewPlain(o Options, name, text string) (Plain, error) {
	made, err := NewCatalog(o)
	if err != nil {
		return nil, err
	}
	c := made.(*catalog)
	lang, _ := c.language(name)
	if lang == nil && filepath.Ext(name) == "" {
		lang = o.Languages[0]
	}
	ev, ok := lang.(Evaluator)
	if !ok {
		var known []string
		for _, l := range o.Languages {
			known = append(known, l.Extensions()...)
		}
		return nil, fmt.Errorf("cannot run %s: scripts end in %s", name, quoteList(known))
	}
	if len(text) > MaxFileSize {
		return nil, fmt.Errorf("cannot run %s: it is larger than %d KiB", name, MaxFileSize>>10)
	}
	require := c.folder().Require
	return ev.Plain(File{Name: filepath.ToSlash(name), Text: text}, Env{
		Modules: o.Modules, Require: func(name string) (File, error) { return require(ev, name) },
	})
}
