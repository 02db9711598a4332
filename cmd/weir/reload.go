package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/service"
	weirhttp "github.com/weir-run/weir/engine/service/http"
)

func reloadCommand(t *terminal) *cobra.Command {
	var dir string
	var wait, asJSON, dryRun bool
	cmd := &cobra.Command{
		Use:   "reload [CONFIG]",
		Short: "Make a running weir read its config and scripts again",
		Long: `Make the weir that runs with the storage path read its config and its scripts
again. The command waits until the new versions are built and their tests have
ended; with --wait, it also waits until canaries are promoted or rolled back.

With --json, it prints one document: the outcome and the records of the changes
that the request caused, as the API returns them. The outcome is applied, partial
(a node stayed on its last good version), refused (the config contains a mistake,
and nothing was changed) or in progress (canaries).

With --dry-run, it prints which nodes a reload would add, rebuild, update or remove,
and why, and changes nothing. It runs no tests. CONFIG is another config to compare
with the running graph.

The exit code is 0 if everything was accepted or is in progress, 1 if a version or
the config was refused or rolled back, or a node failed, and 2 if no weir runs with
the storage path.`,
		Example: `  weir reload
  weir reload --wait --json
  weir reload --dry-run next.alloy
  weir reload --storage.path=/var/lib/weir`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("reload takes one config, not %d", len(args))
			}
			if len(args) > 0 && !dryRun {
				return fmt.Errorf("reload takes no %q: the running weir knows its config; choose the weir with --storage.path", args[0])
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if dryRun {
				return dryReload(cmd.Context(), t, dir, strings.Join(args, ""), asJSON)
			}
			return reload(cmd.Context(), t, dir, wait, asJSON)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for canaries as well")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	return cmd
}

func dryReload(ctx context.Context, t *terminal, dir, config string, asJSON bool) error {
	path := "/-/reload/preview"
	if config != "" {
		abs, err := filepath.Abs(config)
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", config, err)
		}
		path += "?config=" + url.QueryEscape(abs)
	}
	text, err := postTo(ctx, dir, path)
	if err != nil {
		return err
	}
	if asJSON {
		_, err = fmt.Fprintln(t.out, text)
		return err
	}
	var p service.Preview
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("cannot read the response: %w", err)
	}
	for _, n := range p.Nodes {
		fmt.Fprintf(t.out, "%s %s: %s\n", n.Action, n.ID, n.Why)
	}
	_, err = fmt.Fprintf(t.out, "%s would change, %d untouched\n", count(len(p.Nodes), "node"), p.Untouched)
	return err
}

func reload(ctx context.Context, t *terminal, dir string, wait, asJSON bool) error {
	path := "/-/reload"
	if wait {
		path += "?wait=true"
	}
	text, err := postTo(ctx, dir, path)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		text = refused.text
	} else if err != nil {
		return err
	}
	var answer weirhttp.Answer
	if err := json.Unmarshal([]byte(text), &answer); err != nil { // it is an error
		fmt.Fprintln(t.err, text)
		return &exitError{code: exitFailed}
	}
	accepted := answer.Outcome == "applied" || answer.Outcome == "in progress"
	out := t.out
	if !asJSON {
		if text = answer.Text(); !accepted {
			out = t.err
		}
	}
	if _, err = fmt.Fprintln(out, text); err == nil && !accepted {
		err = &exitError{code: exitFailed}
	}
	return err
}

// postTo posts to a path of the running weir and returns the answer, which is JSON.
func postTo(ctx context.Context, dir, path string) (string, error) {
	if err := checkStorage(dir); err != nil {
		return "", err
	}
	return readAnswer(ask(ctx, dir, http.MethodPost, path, "application/json", nil))
}
