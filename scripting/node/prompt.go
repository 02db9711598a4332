package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// Prompt evaluates statements on a VM of a component that does not run: nothing that
// they do reaches a receiver. It is not safe for concurrent use.
type Prompt struct {
	c *Component
	o PromptOptions

	k         *call
	statement scripting.Statement
}

// PromptOptions are the options of NewPrompt.
type PromptOptions struct {
	// Metrics or Logs is the batch of the statements; both may be nil.
	Metrics *batch.Metrics
	Logs    *batch.Logs
	// Log is that of scripting.Host. It is not limited to a rate, unlike the log of a
	// node that runs.
	Log func(level slog.Level, pos, msg string, fields []any)
	// Time is the limit of CPU time for one statement.
	Time time.Duration
}

// NewPrompt runs the hook setup of c, on which Run must not be called, and returns a
// prompt. The caller closes it. setup is the error of that hook, after which statements
// can be evaluated nevertheless.
func NewPrompt(ctx context.Context, c *Component, o PromptOptions) (p *Prompt, setup, err error) {
	p = &Prompt{c: c, o: o}
	setup, err = p.open(ctx)
	return p, setup, err
}

// open creates a VM and puts a window over the batch.
func (p *Prompt) open(ctx context.Context) (setup, err error) {
	c := p.c
	w, err := c.newLoggingWorker(block.ArgumentsOf(c.script.Definition, c.args).Values, p.o.Log)
	if err != nil {
		return nil, err
	}
	if _, ok := w.vm.(scripting.Prompter); !ok {
		return nil, fmt.Errorf("cannot evaluate statements for %s: its language has no prompt", c.script.File.Name)
	}
	w.pool = c.pools.shared // which counts VMs that wait
	if c.script.Definition.Setup {
		_, setup = c.newCall(ctx, w, c.newTerms(ctx)).hook(&scripting.Hook{Name: "setup"})
	}
	p.k = c.newCall(ctx, w, terms{on: scripting.OnErrorDrop, final: true})
	p.k.limits(p.rows())
	switch {
	case p.o.Metrics != nil:
		metricsSignal{}.open(p.k, p.o.Metrics)
		w.win.Limit(int64(c.block.Limits.Output))
		p.statement = scripting.Statement{Metrics: &w.win}
	case p.o.Logs != nil:
		logsSignal{}.open(p.k, p.o.Logs)
		w.lines.Limit(int64(c.block.Limits.Output))
		p.statement = scripting.Statement{Logs: &w.lines}
	}
	return setup, nil
}

// close releases the VM.
func (p *Prompt) close() {
	p.k.closeWindows()
	p.k.done()
}

// Close releases the VM and closes the component.
func (p *Prompt) Close() {
	p.close()
	p.c.world.Close()
	p.c.instance.close()
}

func (p *Prompt) rows() int {
	switch {
	case p.o.Metrics != nil:
		return p.o.Metrics.Len()
	case p.o.Logs != nil:
		return p.o.Logs.Len()
	}
	return 0
}

// Eval evaluates a statement and returns the value of an expression as text. It ends the
// statement when ctx ends. lost reports that a limit or ctx stopped the VM: the next
// statement gets another one, with the batch as it was, and without the variables of
// earlier statements. The error is as that of scripting.Prompter.
func (p *Prompt) Eval(ctx context.Context, f scripting.File) (shown string, lost bool, err error) {
	p.begin(ctx)
	s := p.statement
	s.File = f
	shown, err = p.evaluate(ctx, &s)
	if e := p.k.w.vm.End(); e != nil && err == nil {
		err = e
	}
	p.c.state.flush()
	if !p.k.w.vm.Broken() {
		return shown, false, err
	}
	_, failed := p.Reset(context.WithoutCancel(ctx))
	return shown, true, errors.Join(err, failed)
}

func (p *Prompt) evaluate(ctx context.Context, s *scripting.Statement) (shown string, err error) {
	defer p.k.catchPanic("", &err)
	return p.k.w.vm.(scripting.Prompter).Eval(ctx, s)
}

// begin begins a call on the VM.
func (p *Prompt) begin(ctx context.Context) {
	k := p.k
	k.ctx, k.Now = ctx, p.c.opts.Clock.Now()
	metrics, logs := k.w.limits.Metrics, k.w.limits.Logs // the windows for records of the other signal
	limits := k.limits(p.rows())
	limits.Metrics, limits.Logs, limits.Time, limits.Records = metrics, logs, p.o.Time, 0
	k.w.vm.Begin(limits)
}

// Complete returns the words that can stand at the end of a text, as
// scripting.Prompter does.
func (p *Prompt) Complete(ctx context.Context, text string) (words []string) {
	p.begin(ctx)
	s := p.statement
	s.File.Text = text
	var err error
	defer p.k.catchPanic("", &err)
	return p.k.w.vm.(scripting.Prompter).Complete(&s)
}

// Rows returns the records of the batch that are left, as text, and how many are left
// out because of the limit.
func (p *Prompt) Rows(limit int) (rows []string, more int) { return p.statement.ShownRows(limit) }

// Reset starts again with another VM and the batch as it was. ctx.state keeps its
// content. setup is the error of the hook setup.
func (p *Prompt) Reset(ctx context.Context) (setup, err error) {
	p.close()
	return p.open(ctx)
}
