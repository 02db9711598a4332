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

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/scripting/host"
)

// stateFormats are the output formats of weir state ls.
var stateFormats = []string{"text", "json"}

func stateLsCommand(t *terminal) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:     "ls [NODE]",
		Aliases: []string{"list"},
		Short:   "List the state of all nodes",
		Long: `List the state that scripts declare: for each node the names of its state, with
the kind, the scope, the number of entries and their size. Without a running weir,
only persistent state is listed, as it was saved last.`,
		Example: "  weir state ls\n  weir state ls --format=json | jq '.[] | select(.entries > 1000)'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("state ls takes one NODE, or none to list all nodes")
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(stateFormats, format) {
				return cannotStart(fmt.Errorf("--format must be %s, not %q", strings.Join(stateFormats, " or "), format))
			}
			return stateLs(cmd.Context(), t, dir, args, format)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVar(&format, "format", "text", `"text" or "json"`)
	return cmd
}

// nodeState is a piece of state of a node.
type nodeState struct {
	Node string `json:"node"`
	host.StateSummary
}

func stateLs(ctx context.Context, t *terminal, dir string, only []string, format string) error {
	if err := checkStorage(dir); err != nil {
		return err
	}
	nodes, err := runningNodes(ctx, dir)
	stopped := false
	if _, ok := errors.AsType[*control.NotRunningError](err); ok {
		stopped = true
		nodes, err = host.StoredNodes(dir)
	}
	if len(only) > 0 {
		if !slices.Contains(nodes, only[0]) {
			return errors.Join(err, noState(only[0], nodes, dir, stopped))
		}
		nodes = only
	}
	all := []nodeState{}
	for _, node := range nodes {
		var pieces []host.StateSummary
		var nodeErr error
		if stopped {
			var v *host.StateView
			if v, nodeErr = host.StoredState(dir, node, time.Now()); nodeErr == nil {
				pieces = v.Summaries()
			}
		} else {
			nodeErr = askJSON(ctx, dir, http.MethodGet, "/api/v0/control/"+node+"/state", nil, &pieces)
		}
		err = errors.Join(err, nodeErr) // continue with the other nodes
		for _, p := range pieces {
			all = append(all, nodeState{node, p})
		}
	}
	if len(all) == 0 && err != nil {
		return err
	}
	return errors.Join(writeStates(t, all, dir, stopped, format), err)
}

func noState(node string, nodes []string, dir string, stopped bool) error {
	what := "no scripted node runs as " + node
	if stopped {
		what = fmt.Sprintf("no weir runs with the storage directory %s, and %s has no persistent state there", dir, node)
	}
	if hint := config.DidYouMean(node, nodes); hint != "" {
		what += "; " + hint
	}
	return errors.New(what)
}

func writeStates(t *terminal, all []nodeState, dir string, stopped bool, format string) error {
	if stopped {
		fmt.Fprintf(t.err, "no weir runs with the storage directory %s: only persistent state is listed\n", config.Printable(dir))
	}
	if format == "json" {
		e := json.NewEncoder(t.out)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(t.out, "no node has state")
		return err
	}
	tw := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tNAME\tKIND\tSCOPE\tENTRIES\tSIZE")
	for _, s := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\n", config.Printable(s.Node), config.Printable(s.Name), s.Kind, s.Scope, s.Entries, bytesText(s.Bytes))
	}
	return tw.Flush()
}

// runningNodes returns the scripted nodes of the weir that runs with a storage
// directory, in the order of its config.
func runningNodes(ctx context.Context, dir string) (ids []string, err error) {
	nodes, err := nodesOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if len(n.Sources) > 0 { // only scripts have source files
			ids = append(ids, n.ID)
		}
	}
	return ids, nil
}

// statusNode is a node in the status of a running weir.
type statusNode struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`    // of the component
	Version string   `json:"version"` // of the script
	Sources []string `json:"sources"`
	Health  struct {
		Message string `json:"message"`
	} `json:"health"`
	Arguments json.RawMessage `json:"arguments"` // secrets are masked
	Omitted   int             `json:"omitted"`   // elements of lists
}

// nodesOf returns the nodes of the weir that runs with a storage directory.
func nodesOf(ctx context.Context, dir string) ([]statusNode, error) {
	var status struct {
		Components []statusNode `json:"components"`
	}
	err := askJSON(ctx, dir, http.MethodGet, "/api/v0/status", nil, &status)
	return status.Components, err
}

// nodeIDs returns the names of all nodes of the weir that runs with a storage directory.
func nodeIDs(ctx context.Context, dir string) (ids []string, err error) {
	nodes, err := nodesOf(ctx, dir)
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids, err
}
