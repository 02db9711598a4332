package scripttest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/scripting"
)

// PipelineOptions are the options of OpenPipeline.
type PipelineOptions struct {
	Pipelines
	// Languages are the languages of scripts, and Modules is their standard library. They may
	// be empty if the config uses no script.
	Languages []scripting.Language
	Modules   []*scripting.Module
	// Embedded are the scripts that ship with weir; nil: none.
	Embedded fs.FS
	// Config is the path of the config, a file or a directory.
	Config string
	// Scripts is the folder of scripts; "" is the folder scripts next to the config.
	Scripts string
	// Time is where the clock begins; the default is 2025-01-01T00:00:00Z.
	Time time.Time
	// Exports are the exports of components with exports from outside, by node, as the body of
	// a block, such as targets = [{"__address__" = "localhost:1"}].
	Exports map[string]string
	// Env are the environment variables that the config and its scripts see.
	Env map[string]string
	// HTTP answers the requests of scripts; nil: they fail.
	HTTP http.RoundTripper
}

// Pipeline is a whole config under test, as weir.test.pipeline runs it. It is not safe for concurrent use.
type Pipeline struct{ p *pipeline }

// OpenPipeline runs a config in the real engine, with its edges replaced. The error has all
// mistakes in the config, with their positions. Call Close when the test ends. ctx is for
// all methods.
func OpenPipeline(ctx context.Context, o PipelineOptions) (*Pipeline, error) {
	path, err := filepath.Abs(o.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot run the config %s: %w", o.Config, err)
	}
	dir, err := filepath.Abs(cmp.Or(o.Scripts, filepath.Join(filepath.Dir(path), defaultDir)))
	if err != nil {
		return nil, fmt.Errorf("cannot find the scripts folder: %w", err)
	}
	suite, err := newSuite(Options{Languages: o.Languages, Modules: o.Modules, Embedded: o.Embedded, Pipelines: &o.Pipelines}, dir, &scripting.Probe{})
	if err != nil {
		return nil, err
	}
	s := &session{
		ctx: ctx, folder: suite.folder, langs: o.Languages, modules: o.Modules, pipelines: &o.Pipelines, probe: suite.probe,
		file: scripting.File{Name: o.Config, Path: path}, used: map[string]bool{},
	}
	s.mocks.words, s.mocks.transport = scripting.Busted, o.HTTP
	env := scripting.NewMap()
	for name, v := range o.Env {
		env.Set(name, v)
	}
	s.mocks.set("env", false, env)
	p, err := s.runPipeline(path, func(p *pipeline) error {
		if !o.Time.IsZero() {
			p.clock = testClock{clocktest.New(o.Time)}
		}
		p.given = o.Exports
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Pipeline{p}, nil
}

// Close stops the pipeline. The error is the first in a script since the last call.
func (p *Pipeline) Close() error { return p.p.close() }

// call calls fn unless the pipeline has ended, and adds errors in scripts.
func (p *Pipeline) call(fn func() error) error {
	if err := p.p.usable(); err != nil {
		return err
	}
	return p.p.result(fn())
}

// Send sends one batch from a replaced source: samples in the text format of a scrape, or
// log lines such as {app="api"} the line. If a sink or a script refuses it, the source sends
// it again when the clock has been set forward.
func (p *Pipeline) Send(node, text string) error {
	return p.call(func() error { return p.p.send(node, text) })
}

// Advance sets the clock forward. Timers and polls of scripts, and retries, happen at their
// time.
func (p *Pipeline) Advance(d time.Duration) error {
	return p.call(func() error {
		if d < 0 || d > maxAdvance {
			return fmt.Errorf("cannot set the clock forward by %s: it must be up to a year", d)
		}
		return p.p.advance(d)
	})
}

// Waiting returns the number of records that a replaced source must send again.
func (p *Pipeline) Waiting(node string) (n int, err error) {
	err = p.call(func() error {
		s, err := p.p.source(node)
		if err == nil {
			n = s.held()
		}
		return err
	})
	return n, err
}

// Sink returns a sink of the config.
func (p *Pipeline) Sink(node string) (s *PipelineSink, err error) {
	err = p.call(func() error {
		sink, err := p.p.sink(node)
		s = &PipelineSink{sink}
		return err
	})
	return s, err
}

// PipelineSink is a sink of a Pipeline. Records that it accepts wait in a queue, as in the
// journal of a real sink, until they are delivered.
type PipelineSink struct{ s *pipeSink }

// Received returns the records that were delivered since the last call, in the text format,
// without timestamps that equal the clock.
func (s *PipelineSink) Received() string { return s.s.received().text() }

// Fail lets attempts to deliver a batch fail, as for an endpoint that is down; the records
// are sent again. times is how often; negative: until Recover. A scripted sink cannot fail
// this way: its requests can, with PipelineOptions.HTTP.
func (s *PipelineSink) Fail(reason string, times int) error { return s.s.set(reason, times, false) }

// Reject lets the endpoint reject batches for good. Otherwise it is like Fail.
func (s *PipelineSink) Reject(reason string, times int) error { return s.s.set(reason, times, true) }

// Block lets the sink refuse batches, as with a full journal; the source sends them again.
// times is the number of batches; negative: until Recover.
func (s *PipelineSink) Block(reason string, times int) { s.s.block(reason, times) }

// Recover ends Fail, Reject and Block.
func (s *PipelineSink) Recover() { s.s.recover() }
