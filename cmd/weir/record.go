package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
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
	r, err := o.node(ctx, node)
	if err != nil {
		return err
	}
	options := scripttest.Options{Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: o.scripts}
	if err := scripttest.CheckRecording(options, o.out, r); err != nil {
		return err
	}
	t.printStatus("recording", fmt.Sprintf("%s, %s; ctrl-C ends", node, count(o.calls, "call")))
	err = o.record(recording, t, &r)
	if recording.Err() != nil {
		err = nil
	}
	if err != nil {
		return err
	}
	if len(r.Calls) == 0 {
		return fmt.Errorf("cannot write a test: no call of %s was recorded", node)
	}
	text, err := scripttest.Record(ctx, options, o.out, r)
	if err != nil {
		return err
	}
	return o.write(t, text, len(r.Calls))
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

// node returns the recording of a node, without calls.
func (o *recordOptions) node(ctx context.Context, id string) (r scripttest.Recording, err error) {
	nodes, err := nodesOf(ctx, o.dir)
	if err != nil {
		return r, err
	}
	for _, n := range nodes {
		if n.ID != id {
			continue
		}
		if len(n.Sources) == 0 {
			return r, fmt.Errorf("cannot record %s: it does not run a script", id)
		}
		if n.Omitted > 0 {
			return r, fmt.Errorf("cannot record %s: a list in its arguments or exports is too long", id)
		}
		r = scripttest.Recording{Node: id, Component: n.Name, Where: o.where, Mask: o.mask}
		if err := json.Unmarshal(n.Arguments, &r.Args); err != nil {
			return r, fmt.Errorf("cannot read the arguments of %s: %w", id, err)
		}
		return r, nil
	}
	return r, unknownNode(ctx, o.dir, id)
}

// record adds calls to a recording until there are enough, or ctx ends.
func (o *recordOptions) record(ctx context.Context, t *terminal, r *scripttest.Recording) error {
	q := url.Values{"side": {"diff"}, "format": {tap.FormatCalls}, "limit": {strconv.Itoa(o.calls)}}
	if o.where != "" {
		q.Set("where", o.where)
	}
	u := url.URL{Path: "/api/v0/tap/" + r.Node, RawQuery: q.Encode()}
	answer, err := ask(ctx, o.dir, http.MethodGet, u.String(), "", nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	lines := bufio.NewReader(answer)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return errors.New("the recording ended because the connection to weir was closed")
		}
		if err != nil {
			return fmt.Errorf("cannot read the calls: %w", err)
		}
		if ended, err := o.line(t, r, line); err != nil || ended {
			return err
		}
	}
}

// line adds a line of the tap to the recording, and reports whether it is the last one.
func (o *recordOptions) line(t *terminal, r *scripttest.Recording, line []byte) (ended bool, err error) {
	read := func(v any) error {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(v); err != nil {
			return fmt.Errorf("cannot read the calls: %w", err)
		}
		return nil
	}
	var note struct{ Kind, Text string }
	if err := read(&note); err != nil {
		return false, err
	}
	switch note.Kind {
	case "begin":
		var b tap.Beginning
		err = read(&b)
		r.State = b.State
	case "answer":
		var a tap.Answered
		err = read(&a)
		r.Answers = append(r.Answers, a.Answer)
	case "call":
		var c tap.Call
		err = read(&c)
		r.Calls = append(r.Calls, scripttest.RecordedCall{Began: c.Began, Ended: c.Ended, In: c.In, Out: c.Out, Partial: c.Partial, Outside: c.Outside})
	case "error":
		return false, fmt.Errorf("the recording ended: %s", config.Printable(note.Text))
	case "end":
		return true, nil
	default:
		t.printStatus(note.Kind, config.Printable(note.Text))
	}
	return false, err
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
