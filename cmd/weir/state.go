package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/scripting/host"
)

func stateCommand(t *terminal) *cobra.Command {
	const verbs = "ls, get, set, delete, export"
	cmd := &cobra.Command{
		Use:   "state",
		Short: "List, read and change the state of scripted nodes",
		Long: `List, read and change the state that scripts keep in ctx.state. The name of a node
is the name of its block in the config, such as metrics.cardinality_guard.default.

Values are JSON. Without a running weir, ls, get and export show persistent state.`,
		Example: `  weir state ls
  weir state get metrics.cardinality_guard.default
  weir state get metrics.cardinality_guard.default series`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("say what to do with the state: " + verbs)
			}
			return fmt.Errorf("state cannot %q, only %s", args[0], verbs)
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(stateLsCommand(t))
	verb := func(use, short, long, example string, least, most int, run func(ctx context.Context, s stateCall) error) {
		name, what, _ := strings.Cut(use, " ")
		var dir string
		c := &cobra.Command{
			Use: use, Short: short, Long: long, Example: example,
			Args: func(_ *cobra.Command, args []string) error {
				if len(args) < least || len(args) > most {
					return fmt.Errorf("state %s takes %s", name, what)
				}
				return nil
			},
			RunE: failed(func(cmd *cobra.Command, args []string) error {
				if err := checkStorage(dir); err != nil {
					return err
				}
				s := stateCall{t: t, storage: dir, node: args[0]}
				for i, to := range []**string{&s.name, &s.key, &s.value} {
					if i+1 < len(args) {
						*to = &args[i+1]
					}
				}
				return run(cmd.Context(), s)
			}),
		}
		storageFlag(c.Flags(), &dir)
		cmd.AddCommand(c)
	}
	verb("get NODE [NAME [KEY]]", "Print a node's state, its entries, or the value of a key",
		`Print a node's state in JSON: the names with kinds and sizes, the entries of one
name, or the value of a key. The exit code is 1 when it does not exist.`,
		`  weir state get metrics.cardinality_guard.default
  weir state get metrics.cardinality_guard.default series
  weir state get my.script.default last job1`, 1, 3, stateGet)
	verb("set NODE NAME KEY [VALUE]", "Change a key",
		`Change a key to a value, written in JSON. A set takes no VALUE. To a queue, which
has no keys, set adds KEY as a value.`,
		`  weir state set my.script.default last job1 '{"value": 7}'
  weir state set my.script.default seen some-key`, 3, 4, stateSet)
	verb("delete NODE NAME [KEY]", "Remove a key, or all of them", "Remove a key from a node's state, or all of them.",
		`  weir state delete my.script.default seen some-key
  weir state delete my.script.default seen`, 2, 3, stateDelete)
	verb("export NODE [NAME]", "Print all entries as lines of JSON", "Print all entries of a node's state, or of one part of it, as lines of JSON.",
		`  weir state export my.script.default > state.jsonl`, 1, 2, stateExport)
	return cmd
}

// stateCall is one call of the command.
type stateCall struct {
	t                *terminal
	storage, node    string
	name, key, value *string
}

func stateGet(ctx context.Context, s stateCall) error {
	return s.queryState(ctx, "state", func(v *host.StateView) error { return v.Get(s.t.out, text(s.name), s.key) })
}

func stateExport(ctx context.Context, s stateCall) error {
	return s.queryState(ctx, "state-export", func(v *host.StateView) error { return v.Export(s.t.out, text(s.name)) })
}

func stateSet(ctx context.Context, s stateCall) error {
	return s.sendRequest(ctx, http.MethodPut, "state")
}

func stateDelete(ctx context.Context, s stateCall) error {
	return s.sendRequest(ctx, http.MethodDelete, "state")
}

// queryState queries the running weir, or the storage directory if weir does not
// run.
func (s stateCall) queryState(ctx context.Context, what string, stored func(*host.StateView) error) error {
	err := s.sendRequest(ctx, http.MethodGet, what)
	if _, ok := errors.AsType[*control.NotRunningError](err); !ok {
		return err
	}
	v, readErr := host.StoredState(s.storage, s.node, time.Now())
	if readErr != nil {
		return readErr
	}
	if len(v.Cols) == 0 {
		return fmt.Errorf("cannot read the state of %s: no weir runs with the storage directory %s, and the folder contains no persistent state of this node; set --storage.path", s.node, s.storage)
	}
	return stored(v)
}

// sendRequest sends a request to the node and prints the answer.
func (s stateCall) sendRequest(ctx context.Context, method, what string) error {
	u := &url.URL{Path: "/api/v0/control/" + s.node + "/" + what}
	if s.name != nil {
		u = u.JoinPath(url.PathEscape(*s.name))
	}
	q := url.Values{}
	for name, v := range map[string]*string{"key": s.key, "value": s.value} {
		if v != nil {
			q.Set(name, *v)
		}
	}
	u.RawQuery = q.Encode()
	answer, err := ask(ctx, s.storage, method, u.String(), "", nil)
	return copyAnswer(s.t.out, answer, err)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
