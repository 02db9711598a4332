package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting/scripttest"
)

// recordOptions are the flags of weir record.
type recordOptions struct {
	dir     string // of the storage
	scripts string
	where   string
	out     string
	calls   int
	mask    []string
	force   bool
}

func recordCommand(t *terminal) *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record NODE",
		Short: "Write a test from the live input and output of a script",
		Long: `Record calls of a node of the weir that runs with the storage path, and write a test
that sends the same input to its script. The node must be a script that receives metrics
or log lines and sends them to other nodes.

The test has the arguments of the node, the input of each call, the output that the
script has for it, and the time: the clock of the test begins at the time of the first
call and advances between calls. The test runs before it is written, with the script in
the scripts folder, and it passes.

The test begins with ctx.state as it was when the recording began, of at most 256 KiB.
Answers to requests, the content of files, the output of commands, and environment
variables become mocks. A single answer has at most 64 KiB.

Variables of the script and random numbers are not recorded. A comment in the test names
the calls for which the running node sent a different output. Scripts with several outputs
are refused.

-n is the number of calls; Ctrl-C ends the recording before that and writes the test. Each
call has at most 1,000 records. With --where, only records of the input for which an
expression is true are recorded; 'weir help expr' describes expressions.

Secrets that the arguments and exports of the config contain are masked, as in 'weir
tap'. Also masked are texts that the script passes to ctx.secret or reads as a secret,
and values in answers and state whose name says that they are secrets, such as
access_token. --mask replaces the values of a label by pseudonyms; text in log lines
remains. Read the test before you commit it.

Without --out, the test is printed. An existing file is replaced only with --force. The
exit code is 2 if no weir runs with the storage path.`,
		Example: `  weir record http.paths.default -n 3 --out scripts/http/recorded_test.lua
  weir record logs.dedupe.app --where='line contains "error"' --mask=pod`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return errors.New("record takes the name of one node")
			case o.calls < 1:
				return fmt.Errorf("-n must be 1 or more, not %d", o.calls)
			case o.force && o.out == "":
				return errors.New("--force needs --out")
			}
			return nil
		},
		ValidArgsFunction: scriptedNodes(&o.dir),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if err := checkStorage(o.dir); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(cmd.Context(), ctx, t, args[0])
		}),
	}
	f := cmd.Flags()
	storageFlag(f, &o.dir)
	f.StringVar(&o.scripts, "scripts", "", "folder of scripts (default: the folder called scripts that --out is in, or ./scripts)")
	f.StringVar(&o.where, "where", "", "an expression that selects records of the input")
	f.StringVar(&o.out, "out", "", "file of the test, which ends in _test.lua, .test.js or .test.ts")
	f.IntVarP(&o.calls, "calls", "n", 20, "number of calls to record")
	f.StringSliceVar(&o.mask, "mask", nil, "labels whose values are replaced by pseudonyms")
	f.BoolVar(&o.force, "force", false, "replace the file of --out if it exists")
	return cmd
}

// run records until recording ends, and writes the test.
func (o *recordOptions) run(ctx, recording context.Context, t *terminal, node string) error {
	if err := o.checkOut(); err != nil {
		return err
	}
	nodes, err := nodesOf(ctx, o.dir)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(nodes, func(n statusNode) bool { return n.ID == node })
	if at < 0 {
		return unknownNode(ctx, o.dir, node)
	}
	r, err := recordingOf(nodes[at], o.where, o.mask)
	if err != nil {
		return err
	}
	options := recordingOptions(o.scripts)
	err = scripttest.CheckRecording(options, o.out, r)
	if errors.Is(err, scripttest.ErrNoScript) {
		err = fmt.Errorf("%w; name the folder of scripts with --scripts", err)
	}
	if err != nil {
		return err
	}
	t.printStatus("recording", fmt.Sprintf("%s, %s; ctrl-C ends", node, count(o.calls, "call")))
	rec := recorder{
		get: func(ctx context.Context, path string) (io.ReadCloser, error) {
			return ask(ctx, o.dir, http.MethodGet, path, "", nil)
		},
		note:  t.printStatus,
		calls: o.calls,
	}
	if err := rec.record(recording, &r); err != nil {
		return err
	}
	test, err := scripttest.Record(ctx, options, o.out, r)
	if err != nil {
		return err
	}
	return o.write(t, test.Text, len(r.Calls))
}

// checkOut returns an error if the file of the test may not be written.
func (o *recordOptions) checkOut() error {
	if o.out == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(o.out)); err != nil {
		return fmt.Errorf("cannot write the test: %w", err)
	}
	_, err := os.Lstat(o.out)
	switch {
	case err == nil && !o.force:
		return fmt.Errorf("cannot write the test: %s exists; --force replaces it", o.out)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot write the test: %w", err)
	}
	return nil
}

// write writes the test to its file or to the standard output.
func (o *recordOptions) write(t *terminal, text string, calls int) error {
	if o.out == "" {
		_, err := io.WriteString(t.out, text)
		return err
	}
	err := createFile(o.out, text)
	if errors.Is(err, fs.ErrExist) && o.force {
		err = files.Rewrite(o.out, text)
	}
	if err != nil {
		return err
	}
	t.printStatus("written", fmt.Sprintf("%s, with %s", o.out, count(calls, "call")))
	return nil
}
