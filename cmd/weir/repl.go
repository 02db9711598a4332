package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// replOptions are the flags of weir repl.
type replOptions struct {
	dir     string // of the storage
	node    string
	scripts string
	input   string
	lang    string
	time    time.Duration
	allow   bool
}

// maxPromptRows is the maximum number of records of a node's batch at the prompt.
const maxPromptRows = 10_000

// replLanguages are the languages of statements, by the values of --lang.
var replLanguages = map[string]string{"lua": "lua", "js": "javascript"}

func replCommand(t *terminal, stdin io.Reader) *cobra.Command {
	var o replOptions
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Evaluate Lua or JavaScript at a prompt, with the data of a node",
		Long: `Open a prompt that evaluates statements and prints the values of expressions. The
statements are in the language of the node's script, or in that of --lang: Lua, or
JavaScript with the types of TypeScript. They run in the process of this command, in the
same kind of VM as a script, and change nothing in a weir that runs.

batch is a batch of records and ctx is that of a hook. Without --node, batch has metrics
of this host, or the records in the file --input, and ctx has no grants. With --node:

  - batch is the last batch that the node received, or the last one that a source sent;
    at most 10,000 records. A node that processes metrics and log lines has the metrics.
  - ctx has the arguments and the grants of the node, and a copy of its ctx.state. The
    prompt reaches something outside of weir only with --allow.
  - The variables of the script and its helper functions can be used, read from the
    script in the folder of scripts; of a script in JavaScript or TypeScript, only those
    that it exports. Variables have the values from the start of the script, after the
    hook setup, not those of the running node.

In JavaScript, the modules of weir are variables, such as re for weir/re, statements may
await, and a variable can be declared again. There is no import.

Secrets that the arguments and exports of the config contain are masked, as in 'weir tap'.

A statement can have several lines; the prompt changes until it is complete. The
variables of a statement can be used by later ones. Statements edit the batch as a hook
does; :batch prints what is left of it. :help lists all commands. The tab key completes
names, the arrow keys recall earlier lines, Ctrl-C stops a statement that runs or
discards the line, and Ctrl-D ends the program. Earlier lines are kept in the user's
cache folder, in a file that only the user can read, except those that begin with a
space.

If the standard input is not a terminal, it is read line by line, and only results are
printed. A statement that fails does not end the input, but the exit code is then 1. The
exit code is 2 if no weir runs with the storage path.`,
		Example: `  weir repl
  weir repl --lang=js
  weir repl --input=metrics.txt
  weir repl --node=http.paths.default
  echo '#batch' | weir repl --node=http.paths.default`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return errors.New("repl takes no arguments; --node names a node")
			case o.time < time.Millisecond:
				return fmt.Errorf("--time must be 1ms or more, not %s", o.time)
			case o.node == "" && o.allow:
				return errors.New("--allow needs --node: without a node, there are no grants")
			case o.node == "" && cmd.Flags().Changed("storage.path"):
				return errors.New("--storage.path needs --node")
			case replLanguages[o.lang] == "":
				return fmt.Errorf("--lang must be lua or js, not %q", o.lang)
			case o.node != "" && o.input != "":
				return errors.New("--input has no effect with --node")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd, t, stdin)
		}),
	}
	f := cmd.Flags()
	storageFlag(f, &o.dir)
	f.StringVar(&o.node, "node", "", "node of a running weir whose last batch, arguments, grants and state are used")
	f.StringVar(&o.lang, "lang", "lua", "language of the statements: lua or js; with --node, only for a node without a script")
	f.StringVar(&o.scripts, "scripts", "", "folder of scripts (default: ./scripts)")
	f.StringVar(&o.input, "input", "", "file with the records of the batch: text form of batches, OpenMetrics, JSON lines or log lines")
	f.DurationVar(&o.time, "time", evalTime, "what a statement may take")
	f.BoolVar(&o.allow, "allow", false, "let statements make the requests, read the files and run the programs that the node may")
	if err := cmd.RegisterFlagCompletionFunc("node", completeNodes(&o.dir, nodeIDs)); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

// run opens the prompt and evaluates statements until the input ends.
func (o *replOptions) run(cmd *cobra.Command, t *terminal, stdin io.Reader) error {
	ctx := cmd.Context()
	if o.node != "" {
		if err := checkStorage(o.dir); err != nil {
			return err
		}
	}
	r := &repl{t: t}
	po := scripttest.PromptOptions{
		Options:  scripttest.Options{Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: o.scripts},
		Language: replLanguages[o.lang], Print: r.print, Time: o.time, Allow: o.allow, LookupEnv: os.LookupEnv,
	}
	about := ""
	if o.node != "" {
		var err error
		if about, err = o.fetch(ctx, t, &po); err != nil {
			return err
		}
	} else {
		trier := &trier{o: tryOptions{input: o.input, format: "auto"}, t: t, sample: map[bool]scripttest.Input{}}
		po.Input = func(accepts batch.Signals) (scripttest.Input, error) {
			in, err := trier.records(accepts)
			about = "batch has " + in.Name
			return in, err
		}
	}
	p, err := scripttest.NewPrompt(ctx, po)
	if err != nil {
		return err
	}
	defer p.Close()
	if cmd.Flags().Changed("lang") && p.Language != po.Language {
		return fmt.Errorf("cannot use --lang=%s with %s: its script is in %s", o.lang, o.node, p.Language)
	}
	if p.StateError != nil {
		t.printStatus("state", "cannot copy ctx.state: "+p.StateError.Error())
	}
	if p.Setup != nil {
		t.printStatus("setup", "the hook setup failed: "+p.Setup.Error())
	}
	r.prompt, r.name = p, p.Language
	if t.screen {
		t.printStatus("repl", about+"; :help lists commands, Ctrl-D ends")
		return r.interact(ctx)
	}
	return r.read(ctx, stdin)
}

// fetch gets the script, the arguments, the state and the last batch of the node.
func (o *replOptions) fetch(ctx context.Context, t *terminal, po *scripttest.PromptOptions) (about string, err error) {
	n, err := o.describe(ctx)
	if err != nil {
		return "", err
	}
	po.Node = n.ID
	if len(n.Sources) > 0 {
		if n.Omitted > 0 {
			return "", fmt.Errorf("cannot open a prompt for %s: a list in its arguments or exports is too long", n.ID)
		}
		po.Component = n.Name
		if err := json.Unmarshal(n.Arguments, &po.Args); err != nil {
			return "", fmt.Errorf("cannot read the arguments of %s: %w", n.ID, err)
		}
		if po.State, err = o.state(ctx); err != nil {
			t.printStatus("state", "cannot copy ctx.state: "+firstLine(err))
		}
	}
	for _, of := range []string{"in", "out"} {
		u := url.URL{Path: "/api/v0/batch/" + o.node, RawQuery: url.Values{"of": {of}, "rows": {strconv.Itoa(maxPromptRows)}}.Encode()}
		answer, err := ask(ctx, o.dir, http.MethodGet, u.String(), "", nil)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(answer)
		answer.Close()
		if err != nil {
			return "", fmt.Errorf("cannot read the batch of %s: %w", o.node, err)
		}
		if po.Batch = string(text); strings.TrimSpace(po.Batch) != "" {
			return fmt.Sprintf("batch is the last batch that %s %s", o.node, map[string]string{"in": "received", "out": "sent"}[of]), nil
		}
	}
	return o.node + " has no batch yet, so batch is not there", nil
}

// describe returns the node.
func (o *replOptions) describe(ctx context.Context) (statusNode, error) {
	nodes, err := nodesOf(ctx, o.dir)
	if err != nil {
		return statusNode{}, err
	}
	i := slices.IndexFunc(nodes, func(n statusNode) bool { return n.ID == o.node })
	if i < 0 {
		return statusNode{}, unknownNode(ctx, o.dir, o.node)
	}
	return nodes[i], nil
}

// state returns ctx.state of the node, with masked secrets. It is the first line of a
// recording.
func (o *replOptions) state(ctx context.Context) (map[string]any, error) {
	u := url.URL{Path: "/api/v0/tap/" + o.node, RawQuery: url.Values{"side": {"diff"}, "format": {tap.FormatCalls}, "limit": {"1"}}.Encode()}
	answer, err := ask(ctx, o.dir, http.MethodGet, u.String(), "", nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	line, err := bufio.NewReader(answer).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("cannot read the state: %w", err)
	}
	var b tap.Beginning
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.UseNumber()
	if err := d.Decode(&b); err != nil {
		return nil, fmt.Errorf("cannot read the state: %w", err)
	}
	return b.State, nil
}
