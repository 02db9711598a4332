package plugin

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/plugin/protocol"
)

// describe returns the description of a component. The error says why it cannot be
// served.
func describe(r component.Registration) (*protocol.Component, error) {
	switch {
	case r.Build == nil || r.NewArgs == nil:
		return nil, errors.New("it has no Build or no NewArgs")
	case r.Passes != nil:
		return nil, errors.New("plugins do not support Passes")
	case len(r.NeedsServices) > 0:
		return nil, fmt.Errorf("plugins do not support services (%s)", strings.Join(r.NeedsServices, ", "))
	case r.Trial != nil || r.Compare != nil || r.Instead != nil:
		return nil, errors.New("plugins do not support trials")
	}
	c := &protocol.Component{
		Name: r.Name, Accepts: uint32(r.Accepts), Sends: uint32(r.Sends),
		ExportsLater: r.ExportsLater, Unique: r.Unique, Overlaps: r.Overlaps,
		Summary: r.Doc.Summary, Example: r.Doc.Example,
	}
	var err error
	if c.Arguments, err = fields(r.NewArgs(), r.Doc.Args); err != nil {
		return nil, err
	}
	c.Exports, err = fields(r.Exports, r.Doc.Exports)
	return c, err
}

// fields describes a struct of arguments or exports.
func fields(of any, docs map[string]string) (out []*protocol.Field, err error) {
	for _, f := range config.Describe(of) {
		switch {
		case strings.HasSuffix(f.Path, "*"), strings.HasPrefix(f.Type, "block of"):
			return nil, fmt.Errorf("plugins do not support the block %s, whose content depends on its name", f.Path)
		case strings.Contains(f.Type, "object"), strings.Contains(f.Type, "function"):
			return nil, fmt.Errorf("plugins do not support the type %s of %s", f.Type, f.Path)
		}
		out = append(out, &protocol.Field{
			Path: f.Path, Type: f.Type, Required: f.Required, Default: f.Default,
			Repeated: f.Repeated, Labelled: f.Labeled, Doc: docs[f.Path],
		})
	}
	return out, nil
}

// guard calls f and returns its panic as an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return f()
}

// panicError is the panic of a component.
type panicError struct {
	value any
	stack []byte
}

// Error returns the value and the stack.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }
