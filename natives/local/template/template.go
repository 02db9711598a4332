// Package template is local.template: it renders a file from exports of other
// components with a template, and again when they change.
//
// The template has Go's syntax, with the functions of confd and of sprig. It is
// rendered when values, data or the template change. If the result differs from the
// file, check_command runs with the new file, the new file replaces the old one
// atomically, and reload_command runs. Otherwise, nothing runs. If a step fails, the
// node is unhealthy, and the step is repeated after some seconds, later after some
// minutes; if the check fails, the old file stays. A reload that weir could not finish
// because it stopped or crashed is repeated at the next start.
//
// Commands run without a shell, in the root directory, with PATH as their only
// variable. Processes that a command leaves running in its process group are killed.
package template

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/backoff"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting/egress"
)

const (
	// soon and late are the first and the longest interval between two attempts.
	soon = 5 * time.Second
	late = 5 * time.Minute
	// maxCommandOutput is the maximum output of a command in bytes, and shown is the
	// part of it that an error contains.
	maxCommandOutput = 1 << 20
	shown            = 1 << 10
	// searchPath is the PATH of commands.
	searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Registration describes local.template.
func Registration() component.Registration {
	return component.Registration{
		Name:    "local.template",
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Grants: func(args any) (gs []component.Grant) {
			for _, what := range args.(*Arguments).Allow.Exec {
				gs = append(gs, component.Grant{Kind: "exec", What: what, Path: "allow.exec"})
			}
			return gs
		},
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return build(o, args.(*Arguments))
		},
	}
}

// job is what a set of arguments asks for.
type job struct {
	args     *Arguments
	template *template.Template
	path     string        // of the destination, absolute
	replaced chan struct{} // closed when there is a newer job
}

// Component is the component of a local.template node.
type Component struct {
	opts     component.Options
	renders  prometheus.Counter
	changes  prometheus.Counter
	commands *prometheus.CounterVec
	last     prometheus.Gauge

	mu   sync.Mutex
	job  *job
	done *job  // the last job that was attempted
	err  error // why it failed

	failed bool // the last attempt failed; only used by Run
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ component.Task      = (*Component)(nil)
)

func build(o component.Options, a *Arguments) (*Component, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	c := &Component{
		opts:    o,
		renders: counter("weir_template_renders_total", "Times that the template was rendered."),
		changes: counter("weir_template_changes_total", "Times that the file was written because the result had changed."),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_template_commands_total", Help: "Commands that ran, by command: check or reload, and by outcome: success or failure.",
		}, []string{"command", "outcome"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_template_last_success_timestamp_seconds", Help: "Unix time at which the file was last found to be up to date.",
		}),
	}
	if err := c.Update(a); err != nil {
		return nil, err
	}
	return c, component.Register(o.Registerer, c.renders, c.changes, c.commands, c.last)
}

// Update compiles the template. Run renders it.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	path, err := filepath.Abs(a.Destination)
	if err != nil {
		return fmt.Errorf("cannot find %q: %w", a.Destination, err)
	}
	name, text := "template", a.Template
	if a.TemplateFile != "" {
		b, err := files.Read(a.TemplateFile, files.MaxSecret)
		if err != nil {
			return fmt.Errorf("cannot read the template: %w", err)
		}
		name, text = filepath.Base(a.TemplateFile), string(b)
	}
	t, err := parse(name, text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job != nil {
		close(c.job.replaced)
	}
	c.job = &job{args: a, template: t, path: path, replaced: make(chan struct{})}
	return nil
}

// Sourced returns the file with the template.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job.args.TemplateFile == "" {
		return nil
	}
	return []string{files.Absolute(c.job.args.TemplateFile)}
}

// Finished reports whether the template was rendered with the current arguments,
// and its commands have run; err is why that failed.
func (c *Component) Finished() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done == c.job, c.err
}

// Run renders the template when it changes.
func (c *Component) Run(ctx context.Context) error {
	var pauses backoff.Pauses
	for ctx.Err() == nil {
		c.mu.Lock()
		j := c.job
		c.mu.Unlock()
		err := j.args.hide(c.apply(ctx, j))
		if ctx.Err() != nil {
			return nil
		}
		c.report(err)
		c.mu.Lock()
		c.done, c.err = j, err
		c.mu.Unlock()
		if err != nil {
			pauses.Pause(ctx, c.opts.Clock, backoff.Reasons{Min: soon, Max: late, Replaced: j.replaced})
			continue
		}
		pauses.Reset()
		select {
		case <-j.replaced:
		case <-ctx.Done():
		}
	}
	return nil
}

// apply renders the template, and acts if the result differs from the file.
func (c *Component) apply(ctx context.Context, j *job) error {
	c.renders.Inc()
	text, err := j.args.render(ctx, j.template)
	if err != nil {
		return err
	}
	d, err := look(j.path, j.args)
	if err != nil {
		return err
	}
	pending := c.pending(j, text)
	if !d.same(text) {
		if err := c.replace(ctx, j, d, text, pending); err != nil {
			return err
		}
	} else if !pending.exists() {
		return nil
	}
	if len(j.args.ReloadCommand) > 0 {
		if err := c.run(ctx, "reload", j.args, j.args.ReloadCommand, "", d.path); err != nil {
			return err
		}
	}
	return pending.remove()
}

// replace checks the new file and puts it in the place of the old one.
func (c *Component) replace(ctx context.Context, j *job, d *destination, text []byte, pending marker) error {
	stage, err := d.stage(text)
	if err != nil {
		return err
	}
	defer discard(stage)
	if len(j.args.CheckCommand) > 0 {
		if err := c.run(ctx, "check", j.args, j.args.CheckCommand, stage, d.path); err != nil {
			return err
		}
	}
	if len(j.args.ReloadCommand) > 0 {
		if err := pending.create(); err != nil {
			return err
		}
	}
	if err := d.replace(stage); err != nil {
		return err
	}
	c.changes.Inc()
	c.opts.Logger.Info("wrote the file", "path", d.path, "bytes", len(text))
	return nil
}

// pending returns the marker of a reload that has not finished for this content.
func (c *Component) pending(j *job, text []byte) marker {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%q\n", j.path, j.args.ReloadCommand)
	sum.Write(text)
	return marker{dir: c.opts.DataPath, sum: fmt.Sprintf("%x", sum.Sum(nil))}
}

// run runs a command that the block grants.
func (c *Component) run(ctx context.Context, kind string, a *Arguments, command []string, src, dest string) (err error) {
	defer func() {
		outcome := "success"
		if err != nil {
			outcome = "failure"
		}
		c.commands.WithLabelValues(kind, outcome).Inc()
	}()
	grants, err := a.grants()
	if err != nil {
		return err
	}
	command = fill(command, src, dest)
	g, ok := find(grants, command)
	if !ok {
		return fmt.Errorf("the block does not grant %s_command %q: add it to exec in the block allow", kind, strings.Join(command, " "))
	}
	op := c.opts.Watch.Begin(kind+" command", a.CommandTimeout+time.Minute)
	defer op.End()
	ctx, cancel := context.WithTimeoutCause(ctx, a.CommandTimeout, fmt.Errorf("it did not end within %s", a.CommandTimeout))
	defer cancel()
	r, err := egress.Run(ctx, egress.Command{Path: g.Path(), Args: command[1:], SearchPath: searchPath, MaxOutput: maxCommandOutput})
	if err != nil {
		return fmt.Errorf("%s_command: %w", kind, err)
	}
	if r.Code == 0 {
		return nil
	}
	// The whole output is searched for secrets before it is shortened.
	output := strings.TrimSpace(a.hide(fmt.Errorf("%s\n%s", r.Stdout, r.Stderr)).Error())
	if len(output) > shown {
		output = "… " + strings.ToValidUTF8(output[len(output)-shown:], "")
	}
	return fmt.Errorf("%s_command: %s ended with code %d: %s", kind, g.Path(), r.Code, output)
}

// report reports the health, and logs changes of the state.
func (c *Component) report(err error) {
	h := component.Health{State: component.Healthy, Message: "the file is up to date", Time: c.opts.Clock.Now()}
	if err != nil {
		h.State, h.Message = component.Unhealthy, err.Error()
		c.opts.Logger.Error("the file is not up to date", "err", err)
	} else {
		c.last.Set(float64(h.Time.UnixMilli()) / 1000)
		if c.failed {
			c.opts.Logger.Info("the file is up to date again")
		}
	}
	c.failed = err != nil
	c.opts.Health(h)
}
