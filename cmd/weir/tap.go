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
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/tap"
)

// tapSides are the sides of a node that weir tap can show.
var tapSides = []string{"in", "out", "diff"}

func tapCommand(t *terminal) *cobra.Command {
	var dir, where, format string
	var limit, rate int
	cmd := &cobra.Command{
		Use:   "tap NODE[:in|:out|:diff]",
		Short: "Print the records that pass through a node of a running weir",
		Long: `Print the samples or log lines that pass through a node of the weir that runs with
the storage path. The name of a node is the name of its block in the config, such as
prometheus.relabel.default, and contains the names of the modules around it. A tap
works for components in Go and in scripts. It continues if the node is rebuilt.

  NODE:in     the records that arrive at the node
  NODE:out    the records that the node sends to other nodes
  NODE:diff   the difference between the input and the outputs of each call

Without a side, it prints the output of nodes that send to other nodes, and the input
of sinks. With :diff, each line is a record that the node changed (~), with the
changes, dropped (-) or added (+). Batches do not record which output comes from which
input, so a changed record is the most similar one of the same call. The output of a
component that sends later than it receives, such as a source, is shown as added.

With --where, it prints the records for which an expression is true, before or after
the node; 'weir help expr' describes expressions. In the format text, lines that begin
with # are notes. The format json prints one object per line. The format exposition
prints the text form of batches, with the types of metrics.

A tap never delays the node. It prints the first 20 records of every second, does not
examine the others and reports how many these are; with --limit, it prints up to 1,000
a second. --rate changes this. A tap ends after 10 minutes or 64 MiB. weir allows 10
taps at the same time. Secrets that the arguments and exports of the config contain are
masked; secrets of fewer than 4 bytes only where they are a whole value. Secrets that
only the data contains are visible.

The exit code is 0 if a limit or Ctrl-C ends the tap, 1 if the node does not exist or
was removed or weir stopped, and 2 if no weir runs with the storage path.`,
		Example: `  weir tap prometheus.relabel.default:diff
  weir tap prometheus.scrape.app --where='name startsWith "go_" && value > 0'
  weir tap loki.process.app:in --where='line contains "error"' --limit=10
  weir tap prometheus.scrape.app --format=json | jq .record.name`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("tap takes the name of one node")
			}
			if limit < 0 {
				return fmt.Errorf("--limit must not be negative, not %d", limit)
			}
			if rate < 0 || rate > tap.MaxRate {
				return fmt.Errorf("--rate must be from 1 to %d, not %d", tap.MaxRate, rate)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			nodes, err := nodesOf(cmd.Context(), dir)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, n := range nodes {
				if strings.HasPrefix(n.ID, typed) {
					out = append(out, n.ID)
				}
				if !strings.HasPrefix(typed, n.ID) {
					continue
				}
				for _, side := range tapSides {
					if name := n.ID + ":" + side; strings.HasPrefix(name, typed) {
						out = append(out, name)
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			q := url.Values{"format": {format}}
			node := args[0]
			for _, side := range tapSides {
				if id, ok := strings.CutSuffix(node, ":"+side); ok {
					node = id
					q.Set("side", side)
					break
				}
			}
			if where != "" {
				q.Set("where", where)
			}
			if limit > 0 {
				q.Set("limit", strconv.Itoa(limit))
			}
			if rate > 0 {
				q.Set("rate", strconv.Itoa(rate))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := runTap(ctx, t, dir, node, q)
			if ctx.Err() != nil {
				return nil
			}
			return err
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVar(&where, "where", "", "an expression that selects records")
	cmd.Flags().IntVar(&limit, "limit", 0, "end after this number of records; 0 means no limit")
	cmd.Flags().IntVar(&rate, "rate", 0, "the most records a second; 0 means 20, or 1000 with --limit")
	cmd.Flags().StringVar(&format, "format", "text", "format of the records: "+strings.Join(tap.Formats, ", "))
	return cmd
}

// runTap prints a tap until it ends.
func runTap(ctx context.Context, t *terminal, dir, node string, q url.Values) error {
	u := url.URL{Path: "/api/v0/tap/" + node, RawQuery: q.Encode()}
	answer, err := ask(ctx, dir, http.MethodGet, u.String(), "", nil)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound {
		return unknownNode(ctx, dir, node)
	}
	if err != nil {
		return err
	}
	defer answer.Close()
	lines := bufio.NewReader(answer)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return errors.New("the tap ended because the connection to weir was closed")
		}
		if err != nil {
			return fmt.Errorf("cannot read the records: %w", err)
		}
		line = config.Printable(strings.TrimSuffix(line, "\n"))
		kind, reason := tapNote(line, q.Get("format"))
		switch kind {
		case "error":
			return fmt.Errorf("the tap ended: %s", reason)
		case "end":
			t.printStatus("tap", "ended: "+reason)
			return nil
		}
		if q.Get("format") == "text" {
			line = paintRecord(t.outColor, line)
		}
		if _, err := fmt.Fprintln(t.out, line); err != nil {
			return fmt.Errorf("cannot write the records: %w", err)
		}
	}
}

// tapNote returns the kind and the text of a line that is not a record. The kind
// is empty for a record.
func tapNote(line, format string) (kind, text string) {
	if format == "json" {
		var note struct{ Kind, Text string }
		if json.Unmarshal([]byte(line), &note) == nil && note.Text != "" {
			return note.Kind, note.Text
		}
		return "", ""
	}
	for _, kind := range []string{"note", "end", "error"} {
		if text, ok := strings.CutPrefix(line, "# "+kind+": "); ok {
			return kind, text
		}
	}
	return "", ""
}

// paintRecord colours a line in the format text: changes, notes, and the names
// of metrics.
func paintRecord(color bool, line string) string {
	for prefix, code := range map[string]string{"+ ": "32", "- ": "31", "~ ": "33", "# ": "2"} {
		if strings.HasPrefix(line, prefix) {
			return paint(color, code, line)
		}
	}
	if at := strings.IndexAny(line, "{ "); at > 0 {
		return paint(color, "36", line[:at]) + line[at:]
	}
	return line
}

// unknownNode returns the error for a node that the running weir does not have.
func unknownNode(ctx context.Context, dir, node string) error {
	text := fmt.Sprintf("there is no node %s", node)
	ids, err := nodeIDs(ctx, dir)
	if err != nil {
		return errors.New(text)
	}
	if hint := config.DidYouMean(node, ids); hint != "" {
		return fmt.Errorf("%s; %s", text, hint)
	}
	return fmt.Errorf("%s; 'weir graph' shows the nodes of a config", text)
}
