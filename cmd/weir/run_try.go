package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-run/weir/cmd/weir/quickstart"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/watch"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// tryOptions are the flags of weir run --try.
type tryOptions struct {
	file    string
	input   string
	format  string
	args    []string
	limit   int
	advance time.Duration
	once    bool
	allow   bool
	scripts string // of weir run
}

// tryFlags are the flags that need --try, and sharedFlags those of weir run that --try
// uses as well.
var (
	tryFlags    = []string{"advance", "allow", "arg", "input", "input-format", "limit", "once"}
	sharedFlags = []string{"help", "scripts", "try"}
)

func (o *tryOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.file, "try", "", "run a script with sample data instead of a config, and print what it changes, after each save")
	f.StringVar(&o.input, "input", "", "with --try: file with records for the script, - for the standard input (default: metrics of this host, or sample log lines)")
	f.StringVar(&o.format, "input-format", "auto", "with --try: format of --input: "+strings.Join(scripttest.InputFormats, ", "))
	f.StringArrayVar(&o.args, "arg", nil, "with --try: argument of the script, NAME=VALUE, or a block in the config language; may be repeated")
	f.IntVar(&o.limit, "limit", 10, "with --try: number of changed, dropped and added records that are shown, each")
	f.DurationVar(&o.advance, "advance", 0, "with --try: set the clock of the script forward after the input, so that its timers run")
	f.BoolVar(&o.once, "once", false, "with --try: run the script once; the exit code is 1 if it fails")
	f.BoolVar(&o.allow, "allow", false, "with --try: let the script make the requests, read the files and run the programs that it needs")
}

// check checks the flags and arguments of the command line. It returns an error for flags that
// have no effect, with or without --try.
func (o *tryOptions) check(cmd *cobra.Command, args []string) error {
	trying := cmd.Flags().Changed("try")
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case err != nil:
		case !trying && slices.Contains(tryFlags, f.Name):
			err = fmt.Errorf("--%s needs --try", f.Name)
		case trying && !slices.Contains(tryFlags, f.Name) && !slices.Contains(sharedFlags, f.Name):
			err = fmt.Errorf("--%s has no effect with --try", f.Name)
		}
	})
	switch {
	case err != nil || !trying:
		return err
	case len(args) > 0:
		return errors.New("--try runs a script without a config: name one of them")
	case o.limit < 1:
		return fmt.Errorf("--limit must be 1 or more, not %d", o.limit)
	case o.advance < 0:
		return fmt.Errorf("--advance must be 0s or more, not %s", o.advance)
	case !slices.Contains(scripttest.InputFormats, o.format):
		return fmt.Errorf("cannot use --input-format=%s: it is one of %s", o.format, strings.Join(scripttest.InputFormats, ", "))
	case o.input == "" && cmd.Flags().Changed("input-format"):
		return errors.New("--input-format needs --input")
	}
	return nil
}

// trier runs trials of a script.
type trier struct {
	o       tryOptions
	t       *terminal
	given   *string // the input, if it can be read only once
	sample  map[bool]scripttest.Input
	sources []string
}

// run runs the script, and again after each change until a signal arrives, unless it
// is to run once.
func (o tryOptions) run(ctx context.Context, t *terminal, stdin io.Reader) error {
	r := &trier{o: o, t: t, sample: map[bool]scripttest.Input{}}
	if _, err := os.Stat(o.file); err != nil {
		return cannotStart(fmt.Errorf("cannot try the script: %w", err))
	}
	if err := r.readOnce(stdin); err != nil {
		return cannotStart(err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.once {
		return r.once(ctx)
	}
	var w *watch.Watcher
	w = watch.New(watch.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), OnChange: func(ctx context.Context, paths []string, _ time.Time) {
		t.printStatus("changed", filepath.Base(paths[0])+map[bool]string{true: fmt.Sprintf(" and %d more", len(paths)-1)}[len(paths) > 1])
		r.again(ctx, w)
	}})
	if err := w.Set(r.watched()); err != nil { // before the files are read
		return cannotStart(err)
	}
	r.again(ctx, w)
	t.printStatus("watching", o.file+"; ctrl-C ends")
	return w.Run(ctx)
}

// readOnce reads an input that can be read only once: the standard input, or a FIFO.
// It must be called before signals are handled: Ctrl-C ends the reading.
func (r *trier) readOnce(stdin io.Reader) error {
	if r.o.input == "" {
		return nil
	}
	var text []byte
	var err error
	if r.o.input == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, scripttest.MaxInput+1))
	} else {
		var info os.FileInfo
		if info, err = os.Stat(r.o.input); err == nil && info.Mode().IsRegular() {
			return nil
		}
		if err == nil {
			text, err = files.ReadArgument(r.o.input, scripttest.MaxInput)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot read the input: %w", err)
	}
	given := string(text)
	r.given = &given
	return nil
}

// watched returns the files of the last trial, and the input.
func (r *trier) watched() []string {
	paths := append([]string{r.o.file}, r.sources...)
	if r.o.input != "" && r.given == nil {
		paths = append(paths, r.o.input)
	}
	return paths
}

// once runs the script once.
func (r *trier) once(ctx context.Context) error {
	failed := r.try(ctx)
	if ctx.Err() != nil {
		return errors.New("stopped by a signal")
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// again runs the script and watches the files that it depends on now.
func (r *trier) again(ctx context.Context, w *watch.Watcher) {
	r.try(ctx)
	if err := w.Set(r.watched()); err != nil {
		r.t.errorf("%v", err)
	}
}

// try runs the script, prints the result, and reports whether the script failed.
func (r *trier) try(ctx context.Context) (failed bool) {
	var warned warnings
	tr, err := scripttest.Try(ctx, scripttest.TryOptions{
		Options: scripttest.Options{Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: r.o.scripts, Checks: warned.checks()},
		File:    r.o.file, Args: r.o.args, Input: r.records, Now: time.Now().Truncate(time.Second),
		Advance: r.o.advance, Allow: r.o.allow, LookupEnv: os.LookupEnv,
	})
	if r.sources = tr.Sources; ctx.Err() != nil {
		return true
	}
	if e := warned.write(r.t); e != nil && err == nil {
		err = e
	}
	if err != nil {
		for _, e := range flat(err) {
			fmt.Fprintln(r.t.err, config.Printable(e.Error()))
		}
	} else {
		pretty := r.pretty(r.t.out, r.t.outColor)
		pretty.Trial(tr, r.o.limit)
	}
	pretty := r.pretty(r.t.err, r.t.errColor)
	pretty.TrialErrors(tr)
	return err != nil || tr.Failed()
}

func (r *trier) pretty(w io.Writer, color bool) scripttest.Pretty {
	return scripttest.Pretty{W: w, Clean: config.Printable, Paint: func(code, s string) string { return paint(color, code, s) }}
}

// records returns the input of a trial.
func (r *trier) records(accepts batch.Signals) (scripttest.Input, error) {
	in := scripttest.Input{Name: r.o.input, Format: r.o.format}
	switch {
	case r.o.input == "":
		return r.samples(accepts)
	case r.given != nil:
		if in.Text = *r.given; r.o.input == "-" {
			in.Name = "the standard input"
		}
		return in, nil
	}
	text, err := files.Read(r.o.input, scripttest.MaxInput)
	if err != nil {
		return in, fmt.Errorf("cannot read the input: %w", err)
	}
	in.Text = string(text)
	return in, nil
}

// samples returns metrics of this host, or sample log lines for a script that accepts
// no metrics. Each trial of a session has the same samples, so that only the script makes a
// difference.
func (r *trier) samples(accepts batch.Signals) (in scripttest.Input, err error) {
	logs := accepts&batch.SignalMetrics == 0
	if in, ok := r.sample[logs]; ok {
		return in, nil
	}
	if logs {
		in = scripttest.Input{Name: "sample log lines", Format: "text", Text: quickstart.Logs}
	} else if in, err = hostMetrics(); err != nil {
		return in, err
	}
	r.sample[logs] = in
	return in, nil
}
