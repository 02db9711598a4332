package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/protocol"
)

// kind is a component that a plugin describes.
type kind struct {
	program       *program
	name          string
	accepts       batch.Signals
	sends         batch.Signals
	args, exports *object
	desc          *protocol.Component
	doc           component.Doc
}

// newKind checks the description of a component.
func newKind(p *program, namespace string, d *protocol.Component) (*kind, error) {
	const all = batch.SignalMetrics | batch.SignalLogs
	k := &kind{program: p, name: d.GetName(), accepts: batch.Signals(d.GetAccepts()), sends: batch.Signals(d.GetSends()), desc: d}
	for part := range strings.SplitSeq(k.name, ".") {
		if !identifier.MatchString(part) {
			return nil, errors.New("its name is not valid")
		}
	}
	switch first, _, dotted := strings.Cut(k.name, "."); {
	case first != namespace || !dotted:
		return nil, fmt.Errorf("its name must begin with %s., which is in the name of the file", namespace)
	case d.Accepts > uint32(all) || d.Sends > uint32(all):
		return nil, errors.New("its signals are not valid")
	}
	var err error
	if k.args, err = newObject(d.Arguments); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	if k.exports, err = newObject(d.Exports); err != nil {
		return nil, fmt.Errorf("exports: %w", err)
	}
	receiver := false
	for _, f := range d.Exports {
		receiver = receiver || f.Path == "receiver" && f.Type == "receiver"
	}
	if receiver != (k.accepts != 0) || len(k.exports.blocks) > 0 {
		return nil, errors.New("it must export a receiver if it accepts a signal, and only then")
	}
	k.doc = component.Doc{Summary: d.Summary, Example: d.Example, Args: docs(d.Arguments), Exports: docs(d.Exports)}
	return k, nil
}

func docs(fields []*protocol.Field) map[string]string {
	out := map[string]string{}
	for _, f := range fields {
		if f.Doc != "" {
			out[f.Path] = f.Doc
		}
	}
	return out
}

// registration returns the registration for the engine.
func (k *kind) registration() component.Registration {
	r := component.Registration{
		Name: k.name, Version: k.program.digest, Sources: []string{k.program.path},
		Origin:  fmt.Sprintf("it is defined by the plugin %s", filepath.Base(k.program.path)),
		Accepts: k.accepts, Sends: k.sends, NewArgs: k.args.newArgs, ExportsLater: k.desc.ExportsLater,
		Check: k.check, Build: k.build, Overlaps: k.desc.Overlaps, Unique: k.desc.Unique, Doc: k.doc,
	}
	if len(k.desc.Exports) > 0 {
		r.Exports, _ = k.exports.exports(nil) // without values, there is no error
	}
	return r
}

// check is Check of the registration: the plugin checks the arguments.
func (k *kind) check(args any, settled func(name string) bool) []*component.ArgumentError {
	// Check has no context, and the time is limited.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	number := uint32(0)
	arguments, err := k.args.encode(args, func(*flow.Receiver) uint32 { number++; return number })
	if err != nil {
		return []*component.ArgumentError{{Err: err}}
	}
	proc, err := k.program.acquire(ctx)
	if err != nil {
		return []*component.ArgumentError{{Err: err}}
	}
	defer proc.release()
	resp, err := proc.service.Check(ctx, &protocol.CheckRequest{Component: k.name, Arguments: arguments})
	if err != nil {
		return []*component.ArgumentError{{Err: fmt.Errorf("the plugin %s cannot check the arguments: %w", k.program.path, err)}}
	}
	all := true
	for _, a := range k.args.attrs {
		all = all && settled(a.name)
	}
	for _, b := range k.args.blocks {
		all = all && settled(b.name)
	}
	var out []*component.ArgumentError
	for _, p := range resp.Problems {
		first, _, _ := strings.Cut(p.GetPath(), ".")
		if !all && (first == "" || !settled(first)) {
			continue // it may be about a value that is not known yet
		}
		out = append(out, &component.ArgumentError{Path: p.GetPath(), Err: errors.New(p.GetMessage()), Detail: p.GetDetail(), Warning: p.GetWarning()})
	}
	return out
}
