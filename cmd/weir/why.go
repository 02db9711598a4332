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

func whyCommand(t *terminal) *cobra.Command {
	var dir, format string
	var limit, seconds int
	var targets bool
	cmd := &cobra.Command{
		Use:   "why NODE|'*' 'EXPR'",
		Short: "Follow records through a running weir and show what changed or dropped them",
		Long: `Follow the samples or log lines for which an expression is true through a node of the
running weir and all nodes below it, or with '*' through all nodes. For each record,
it prints what each node did to it, and names the step that changed or dropped it: the
rule of prometheus.relabel and loki.relabel, the stage of loki.process, the expression
of the expr components, and the line of a script. It also names the route of expr.route
that a record takes. A record is followed if it matches at any of the nodes, before or
after it. 'weir help expr' describes expressions.

A node that sends no output for a record in the same call either dropped the record or
sends it later. Batches do not record which output of a node comes from which input:
weir pairs each output with the most similar input of the call.

With --targets, it shows the way of targets for whose labels the expression is true: which
discovery has a target, which rule of discovery.relabel changed or dropped it, and
whether prometheus.scrape scrapes it, with the error or the limit if it is down. This is
the state at the moment; --seconds has no effect.

It never delays nodes. Secrets are masked as in 'weir tap'.

The exit code is 0 if a record or a target was found or Ctrl-C ends it, 1 if none was found, an
argument is invalid or the node does not exist, and 2 if no weir runs with the storage
path.`,
		Example: `  weir why '*' 'name == "http_requests_total"'
  weir why loki.relabel.app 'line contains "error"' --limit=1
  weir why '*' 'labels.__address__ == "10.0.0.7:80"' --targets`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("why takes the name of a node, or '*', and an expression in quotes")
			}
			if format != "text" && format != "json" {
				return fmt.Errorf("--format must be text or json, not %q", format)
			}
			return nil
		},
		ValidArgsFunction: completeNodes(&dir, nodeIDs),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			q := url.Values{"where": {args[1]}, "limit": {strconv.Itoa(limit)}, "seconds": {strconv.Itoa(seconds)}}
			if targets {
				q.Set("targets", "true")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := runWhy(ctx, t, dir, args[0], q, format == "json")
			if ctx.Err() != nil {
				return nil
			}
			return err
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().IntVar(&limit, "limit", 3, "end after this number of records or targets, from 1 to 100, or to 1000 for targets")
	cmd.Flags().IntVar(&seconds, "seconds", 30, "end after this time, from 1 to 600")
	cmd.Flags().BoolVar(&targets, "targets", false, "follow targets instead of records")
	cmd.Flags().StringVar(&format, "format", "text", "format of the output: text, json")
	return cmd
}

// runWhy prints the paths of records.
func runWhy(ctx context.Context, t *terminal, dir, node string, q url.Values, asJSON bool) error {
	u := url.URL{Path: "/api/v0/why/" + node, RawQuery: q.Encode()}
	answer, err := ask(ctx, dir, http.MethodGet, u.String(), "", nil)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound {
		return unknownNode(ctx, dir, node)
	}
	if err != nil {
		return err
	}
	defer answer.Close()
	lines := bufio.NewReader(answer)
	for found := 0; ; {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return errors.New("the connection to weir was closed")
		}
		if err != nil {
			return fmt.Errorf("cannot read the records: %w", err)
		}
		var p tap.Path
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			return fmt.Errorf("cannot read the records: %w", err)
		}
		switch p.Kind {
		case "end":
			if found == 0 {
				return errors.New(p.Text)
			}
			t.printStatus("why", "ended: "+p.Text)
			return nil
		case "error":
			return errors.New(p.Text)
		case "note":
			t.printStatus("why", p.Text)
			continue
		}
		found++
		text := config.Printable(strings.TrimSuffix(line, "\n")) + "\n"
		if !asJSON {
			text = pathText(t.outColor, p)
		}
		if _, err := io.WriteString(t.out, text); err != nil {
			return fmt.Errorf("cannot write the records: %w", err)
		}
	}
}

// pathText returns a path as lines.
func pathText(color bool, p tap.Path) string {
	var b strings.Builder
	fmt.Fprintln(&b, paint(color, "36", config.Printable(p.Text)))
	for _, n := range p.Nodes {
		code := map[string]string{"changed": "33", "dropped": "31", "missing": "31", "refused": "31", "accepted": "32",
			"down": "31", "invalid": "31", "up": "32"}[n.Result]
		fmt.Fprintf(&b, "  %s %s", config.Printable(n.Node), paint(color, code, n.Result))
		if n.Reason != "" {
			fmt.Fprintf(&b, ": %s", config.Printable(n.Reason))
		}
		b.WriteByte('\n')
		for _, s := range n.Steps {
			fmt.Fprintf(&b, "    %s\n", config.Printable(stepText(s)))
		}
		if len(n.Steps) == 0 {
			for _, c := range n.Changes {
				fmt.Fprintf(&b, "    %s\n", config.Printable(c))
			}
		}
	}
	return b.String()
}

// stepText describes a step on one line.
func stepText(s tap.PathStep) string {
	var b strings.Builder
	if s.Within != "" {
		b.WriteString(s.Within + ", ")
	}
	b.WriteString(s.Kind)
	if s.Index > 0 {
		fmt.Fprintf(&b, " %d", s.Index)
	}
	if s.Name != "" {
		b.WriteString(" " + s.Name)
	}
	if s.Detail != "" {
		fmt.Fprintf(&b, " (%s)", s.Detail)
	}
	what := s.Changes
	switch {
	case s.Dropped && s.Depends != "":
		what = append([]string{"dropped, depending on " + s.Depends}, what...)
	case s.Dropped:
		what = append([]string{"dropped"}, what...)
	case s.Later:
		what = append([]string{"may send it later, depending on " + s.Depends}, what...)
	case s.Depends != "":
		what = append([]string{"may have dropped it, depending on " + s.Depends}, what...)
	}
	if len(what) == 0 {
		return b.String()
	}
	return b.String() + ": " + strings.Join(what, ", ")
}
