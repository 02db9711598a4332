package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/storage"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/quarantine"
)

func quarantineCommand(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine",
		Short: "Look at what scripts failed on, replay it or drop it",
		Long: `List, show, replay and remove quarantined data: batches or records on which a
script failed, in blocks with script { on_error = "quarantine" } or "hold". Each
entry contains the original data and the error. After you have fixed the script,
replay the entries; entries that succeed are removed from the quarantine.`,
		Example: `  weir quarantine ls
  weir quarantine show http.paths.default 3
  weir quarantine replay http.paths.default --with scripts/http/paths.lua
  weir quarantine replay http.paths.default
  weir quarantine drop http.paths.default 3`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("say what to do with the quarantine: ls, show, replay or drop")
			}
			return fmt.Errorf("quarantine cannot %q, only ls, show, replay and drop", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(quarantineLsCommand(t), quarantineShowCommand(t), quarantineReplayCommand(t), quarantineDropCommand(t))
	return cmd
}

func quarantineLsCommand(t *terminal) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:     "ls [NODE]",
		Short:   "List what is in quarantine",
		Example: "  weir quarantine ls\n  weir quarantine ls --format=json http.paths.default",
		Args:    cobra.MaximumNArgs(1),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return cannotStart(fmt.Errorf(`--format must be "text" or "json", not %q`, format))
			}
			if err := checkStorage(dir); err != nil {
				return err
			}
			return quarantineLs(t.out, dir, args, format)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVar(&format, "format", "text", `"text" or "json"`)
	return cmd
}

func quarantineLs(out io.Writer, dir string, nodes []string, format string) error {
	if len(nodes) == 0 {
		var err error
		if nodes, err = quarantine.Nodes(dir); err != nil {
			return err
		}
	}
	all := []quarantine.Entry{}
	var aside []string
	for _, n := range nodes {
		l, err := quarantine.List(quarantine.Dir(dir, n))
		if err != nil {
			return err
		}
		all = append(all, l.Entries...)
		for _, a := range l.Aside {
			aside = append(aside, n+": "+a)
		}
	}
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Entries []quarantine.Entry `json:"entries"`
			Aside   []string           `json:"set_aside,omitempty"`
		}{all, aside})
	}
	if len(all) == 0 {
		fmt.Fprintf(out, "there is nothing in quarantine in %s\n", config.Printable(dir))
	} else {
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "NODE\tID\tAGE\tRECORDS\tERROR")
		for _, e := range all {
			first, _, _ := strings.Cut(e.Text, "\n")
			fmt.Fprintf(tw, "%s\t%d\t%s\t%d\t%s\n", config.Printable(e.Node), e.ID, age(time.Now(), e.Time), e.Records, config.Printable(first))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	for _, a := range aside {
		fmt.Fprintf(out, "set aside, cannot be read: %s\n", config.Printable(a))
	}
	return nil
}

func quarantineShowCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "show NODE ID…",
		Short:   "Show an error and the data it is about",
		Example: "  weir quarantine show http.paths.default 3",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("say which: weir quarantine show NODE ID, as weir quarantine ls lists them")
			}
			_, err := entryIDs(args[1:])
			return err
		},
		RunE: failed(func(_ *cobra.Command, args []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			ids, _ := entryIDs(args[1:]) // checked above
			for i, id := range ids {
				e, data, err := quarantine.Read(quarantine.Dir(dir, args[0]), id)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Fprintln(t.out)
				}
				fmt.Fprintf(t.out, "node     %s\nentry    %d of %s\nscript   %s, version %s, arguments %s\n", config.Printable(e.Node), e.ID, e.Time.Format(time.RFC3339), config.Printable(e.File), e.Version, e.Args)
				fmt.Fprintf(t.out, "error    %s\n", strings.ReplaceAll(config.Printable(e.Text), "\n", "\n         "))
				fmt.Fprintf(t.out, "%-9s%d\n\n%s", e.Signal, e.Records, config.Printable(string(data)))
			}
			return nil
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}

func entryIDs(args []string) (ids []uint64, err error) {
	for _, a := range args {
		id, err := strconv.ParseUint(a, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot use %q as an entry: it must be a number, as weir quarantine ls lists them", a)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func quarantineReplayCommand(t *terminal) *cobra.Command {
	var dir, with string
	var send bool
	cmd := &cobra.Command{
		Use:   "replay NODE [ID…]",
		Short: "Send entries through a node again",
		Long: `Send some or all entries of a node through the running version of its script and
on to its receivers. Entries that succeed are removed from the quarantine. Entries
that fail again stay, and the exit code is 1. A weir with the storage path must be
running.

With --with FILE, use that script instead, with the arguments of the node, and
print the result. Without --send, nothing is sent and the quarantine does not
change.`,
		Example: `  weir quarantine replay http.paths.default
  weir quarantine replay http.paths.default 3 --with scripts/http/paths.lua`,
		Args: nodeAndIDs("replay"),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			req := node.QuarantineRequest{Send: send}
			req.IDs, _ = entryIDs(args[1:]) // checked above
			if send && with == "" {
				return cannotStart(errors.New("--send is for --with FILE: without it what passes is sent on anyway"))
			}
			if with != "" {
				text, err := files.ReadArgument(with, scripting.MaxFileSize)
				if err != nil {
					return cannotStart(fmt.Errorf("cannot read the script: %w", err))
				}
				req.With = &scripting.File{Name: with, Text: string(text)}
			}
			return quarantineReplay(cmd.Context(), t, dir, args[0], req)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVar(&with, "with", "", "script to use instead of the node's; prints what comes out")
	cmd.Flags().BoolVar(&send, "send", false, "with --with: send on what comes out, and let it leave the quarantine")
	return cmd
}

func nodeAndIDs(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("say which node: weir quarantine %s NODE [ID…], as weir quarantine ls lists them", what)
		}
		_, err := entryIDs(args[1:])
		return err
	}
}

func quarantineReplay(ctx context.Context, t *terminal, dir, node string, req node.QuarantineRequest) error {
	if err := checkStorage(dir); err != nil {
		return err
	}
	results, err := askQuarantine(ctx, dir, node, "replay", req)
	if err != nil {
		return err
	}
	passed := 0
	for _, r := range results {
		switch {
		case r.Error != "":
			fmt.Fprintf(t.out, "%d stays: %s\n", r.ID, strings.ReplaceAll(config.Printable(r.Error), "\n", "\n  "))
		case r.Gone:
			fmt.Fprintf(t.out, "%d passed\n", r.ID)
		default:
			fmt.Fprintf(t.out, "%d would pass\n", r.ID)
		}
		for _, o := range r.Outputs {
			fmt.Fprintf(t.out, "  to %s\n%s", o.Name, indent(config.Printable(o.Text), "    "))
		}
		if r.Passed {
			passed++
		}
	}
	verb := "passed"
	if req.With != nil && !req.Send {
		verb = "would pass"
	}
	fmt.Fprintf(t.out, "%d of %d %s\n", passed, len(results), verb)
	if passed < len(results) {
		return &exitError{code: exitFailed}
	}
	return nil
}

// askQuarantine sends the request to the running weir. The error wraps
// fs.ErrNotExist if there is no such node.
func askQuarantine(ctx context.Context, dir, node, what string, q node.QuarantineRequest) (results []node.QuarantineResult, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	err = askJSON(ctx, dir, http.MethodPost, "/api/v0/control/"+node+"/quarantine/"+what, bytes.NewReader(body), &results)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		if refused.status == http.StatusNotFound {
			err = fmt.Errorf("%w (%w)", err, fs.ErrNotExist)
		}
		err = fmt.Errorf("cannot %s: %w", what, err)
	}
	return results, err
}

func quarantineDropCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "drop NODE [ID…]",
		Short: "Remove entries for good",
		Long: `Permanently remove some or all entries of a node. weir may be running with the
storage path or not.`,
		Example: "  weir quarantine drop http.paths.default 3 4",
		Args:    nodeAndIDs("drop"),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			ids, _ := entryIDs(args[1:]) // checked above
			return quarantineDrop(cmd.Context(), t, dir, args[0], ids)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}

func quarantineDrop(ctx context.Context, t *terminal, dir, name string, ids []uint64) error {
	if err := checkStorage(dir); err != nil {
		return err
	}
	results, err := askQuarantine(ctx, dir, name, "drop", node.QuarantineRequest{IDs: ids})
	_, idle := errors.AsType[*control.NotRunningError](err)
	switch {
	case idle:
		lock, lerr := storage.Acquire(dir, time.Now())
		if lerr != nil {
			return cannotStart(lerr)
		}
		results, err = dropOnDisk(dir, name, ids)
		err = errors.Join(err, lock.Release())
	case errors.Is(err, fs.ErrNotExist): // the node does not exist any more, and nothing else uses its files
		results, err = dropOnDisk(dir, name, ids)
	}
	if err != nil {
		return err
	}
	gone := 0
	for _, r := range results {
		if r.Error != "" {
			fmt.Fprintln(t.err, config.Printable(r.Error))
			continue
		}
		gone++
	}
	fmt.Fprintf(t.out, "%d dropped\n", gone)
	if gone < len(results) {
		return &exitError{code: exitFailed}
	}
	return nil
}

func dropOnDisk(dir, name string, ids []uint64) (results []node.QuarantineResult, err error) {
	place := quarantine.Dir(dir, name)
	if len(ids) == 0 {
		l, err := quarantine.List(place)
		if err != nil {
			return nil, err
		}
		for _, e := range l.Entries {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		r := node.QuarantineResult{ID: id, Passed: true, Gone: true}
		if err := quarantine.Remove(place, id); err != nil {
			r = node.QuarantineResult{ID: id, Error: err.Error()}
		}
		results = append(results, r)
	}
	return results, nil
}
