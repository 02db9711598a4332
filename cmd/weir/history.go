package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/scripting/versions"
)

func historyCommand(t *terminal) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history [NODE]",
		Short: "List the versions of scripts that were active",
		Long: `List the versions of a node's script that were active on the node, and the versions
that were refused, the newest first. Without NODE, list all nodes whose scripts are
in the folder of scripts.

weir keeps the sources of the last 20 versions of each script in the storage
directory: the script, the files that it imports and its test file. Scripts that
ship with weir have no history.

When no weir runs, history reads the storage directory. It then shows the versions
that were active last, also of nodes that have left the config. The exit code is 2 if
there is no history.`,
		Example: `  weir history
  weir history metrics.relabel.default
  weir history metrics.relabel.default --json | jq '.versions[0].id'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("history takes one NODE, or none to list all nodes")
			}
			return nil
		},
		ValidArgsFunction: scriptedNodes(&dir),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			if len(args) == 1 {
				return history(cmd.Context(), t, dir, args[0], asJSON)
			}
			return histories(cmd.Context(), t, dir, asJSON)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// history lists the versions of one node.
func history(ctx context.Context, t *terminal, dir, node string, asJSON bool) error {
	h, err := historyOf(ctx, dir, node)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(t, h)
	}
	runs := "runs"
	if h.Stopped {
		runs = "ran"
	}
	fmt.Fprintf(t.out, "%s %s version %s of %s\n", config.Printable(h.Node), runs, component.ShortVersion(h.Running), config.Printable(h.File))
	if p := h.Pinned; p != nil {
		fmt.Fprintf(t.out, "It is pinned to version %s since %s UTC, until its files change or you run 'weir unpin %s'.\n", component.ShortVersion(p.ID), utc(p.Time), config.Printable(h.Node))
	}
	tw := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "VERSION\tTIME (UTC)\tEVENT")
	for _, e := range h.events() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", component.ShortVersion(e.id), utc(e.at), config.Printable(e.what))
	}
	return tw.Flush()
}

// nodeHistory is what weir tells of the versions of a node.
type nodeHistory struct{ versions.History }

// event is a line of a history.
type event struct {
	id   string
	at   time.Time
	what string
}

// events returns what became of the versions, the newest event first.
func (h nodeHistory) events() (all []event) {
	for _, v := range h.Versions {
		what := "active"
		if v.Passed != nil {
			what += ", passed its tests"
		}
		if v.ID == h.Running && !h.Stopped {
			what += ", running"
		}
		all = append(all, event{v.ID, v.Active, what})
	}
	for _, f := range h.Refused {
		what := "refused by " + f.Step
		if f.Step == versions.StepRollback {
			what = "rolled back"
		}
		if reason, _, _ := strings.Cut(f.Reason, "\n"); reason != "" {
			what += ": " + reason
		}
		all = append(all, event{f.ID, f.Time, what})
	}
	slices.SortStableFunc(all, func(a, b event) int { return b.at.Compare(a.at) })
	return all
}

// histories lists all nodes whose scripts have a history.
func histories(ctx context.Context, t *terminal, dir string, asJSON bool) error {
	all := []nodeHistory{}
	nodes, err := runningNodes(ctx, dir)
	if _, ok := errors.AsType[*control.NotRunningError](err); ok {
		for _, h := range versions.Look(dir).Histories() {
			all = append(all, nodeHistory{h})
		}
		if len(all) > 0 {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	for _, node := range nodes {
		h, nodeErr := historyOf(ctx, dir, node)
		if nodeErr != nil {
			err = errors.Join(err, nodeErr) // the other nodes are listed all the same
			continue
		}
		all = append(all, h)
	}
	if asJSON {
		return errors.Join(writeJSON(t, all), err)
	}
	if len(all) == 0 && err == nil {
		_, err := fmt.Fprintln(t.out, "no node runs a script of the folder of scripts")
		return err
	}
	tw := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tVERSION\tACTIVE SINCE (UTC)\tVERSIONS\tNOTE")
	for _, h := range all {
		since, note := "", ""
		if i := slices.IndexFunc(h.Versions, func(v versions.Entry) bool { return v.ID == h.Running }); i >= 0 {
			since = utc(h.Versions[i].Active)
		}
		if h.Pinned != nil {
			note = "pinned"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\n", config.Printable(h.Node), component.ShortVersion(h.Running), since, len(h.Versions), note)
	}
	return errors.Join(tw.Flush(), err)
}

// historyOf asks the running weir for the history of a node, or reads it if no weir runs.
func historyOf(ctx context.Context, dir, node string) (h nodeHistory, err error) {
	err = checkScripted(ctx, dir, node, noVersions)
	if _, ok := errors.AsType[*control.NotRunningError](err); ok {
		all := versions.Look(dir).Histories()
		if i := slices.IndexFunc(all, func(h versions.History) bool { return h.Node == node }); i >= 0 {
			return nodeHistory{all[i]}, nil
		}
	}
	if err != nil {
		return h, err
	}
	return h, askJSON(ctx, dir, http.MethodGet, "/api/v0/control/"+node+"/history", nil, &h)
}

const noVersions = "has no versions"

// checkScripted returns an error unless a node of the running weir is a script. native
// says of another node what follows from that.
func checkScripted(ctx context.Context, dir, node, native string) error {
	nodes, err := nodesOf(ctx, dir)
	if err != nil {
		return err
	}
	var ids []string
	for _, n := range nodes {
		if n.ID == node && n.Version == "" {
			return fmt.Errorf("%s is no script: it is built into weir and %s", node, native)
		}
		if n.ID == node {
			return nil
		}
		ids = append(ids, n.ID)
	}
	text := fmt.Sprintf("there is no node %s", node)
	if hint := config.DidYouMean(node, ids); hint != "" {
		return fmt.Errorf("%s; %s", text, hint)
	}
	return errors.New(text + "; 'weir history' lists the nodes that run scripts")
}

// scriptedNodes completes the nodes of the running weir whose scripts have a history.
func scriptedNodes(dir *string) cobra.CompletionFunc { return completeNodes(dir, runningNodes) }

// completeNodes completes the nodes of the running weir that list returns.
func completeNodes(dir *string, list func(ctx context.Context, dir string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		nodes, err := list(cmd.Context(), *dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, id := range nodes {
			if strings.HasPrefix(id, typed) {
				out = append(out, id)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func writeJSON(t *terminal, v any) error {
	e := json.NewEncoder(t.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func utc(t time.Time) string { return t.UTC().Format(time.DateTime) }
