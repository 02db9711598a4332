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
	"github.com/weir-run/weir/scripting/node"
)

func reloadCommand(t *terminal) *cobra.Command {
	var dir, scripts string
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
and why, and changes nothing. CONFIG is another config, and --scripts another folder
of scripts, to compare with the running graph. It runs no tests. Where a node with
on_reload = "shadow" would get another version of its script, it runs the step shadow
and prints how the results of the versions differ. It takes at most 30 seconds.

The exit code is 0 if everything was accepted or is in progress, 1 if a version or
the config was refused or rolled back, or a node failed, and 2 if no weir runs with
the storage path. With --dry-run, it is 1 if a version or the config would be refused.`,
		Example: `  weir reload
  weir reload --wait --json
  weir reload --dry-run next.alloy
  weir reload --dry-run --scripts=next/scripts
  weir reload --storage.path=/var/lib/weir`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("reload takes one config, not %d", len(args))
			}
			if len(args) > 0 && !dryRun {
				return fmt.Errorf("reload takes no %q: the running weir knows its config; choose the weir with --storage.path", args[0])
			}
			if scripts != "" && !dryRun {
				return errors.New("--scripts needs --dry-run: the running weir knows its folder of scripts")
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if dryRun {
				return dryReload(cmd.Context(), t, dir, strings.Join(args, ""), scripts, asJSON)
			}
			return reload(cmd.Context(), t, dir, wait, asJSON)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for canaries as well")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	cmd.Flags().StringVar(&scripts, "scripts", "", "with --dry-run: another folder of scripts")
	return cmd
}

func dryReload(ctx context.Context, t *terminal, dir, config, scripts string, asJSON bool) error {
	query := url.Values{}
	for name, path := range map[string]string{"config": config, "scripts": scripts} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", path, err)
		}
		query.Set(name, abs)
	}
	text, err := postTo(ctx, dir, "/-/reload/preview?"+query.Encode())
	if err != nil {
		return err
	}
	var p struct {
		Nodes     []previewNode
		Untouched int
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("cannot read the response: %w", err)
	}
	refused := 0
	for _, n := range p.Nodes {
		if n.Action == "refused" {
			refused++
		}
	}
	if asJSON {
		_, err = fmt.Fprintln(t.out, text)
	} else {
		for _, n := range p.Nodes {
			fmt.Fprintf(t.out, "%s %s: %s\n", n.Action, n.ID, n.Why)
			if n.Shadow != nil {
				fmt.Fprintf(t.out, "  shadow: %s\n", strings.ReplaceAll(n.Shadow.String(), "\n", "\n  "))
			}
		}
		summary := count(len(p.Nodes)-refused, "node") + " would change"
		if refused > 0 {
			summary += fmt.Sprintf(", %d refused", refused)
		}
		_, err = fmt.Fprintf(t.out, "%s, %d untouched\n", summary, p.Untouched)
	}
	if err != nil {
		return err
	}
	if refused > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// previewNode is a service.PreviewNode in a response.
type previewNode struct {
	service.PreviewNode
	Shadow *node.Difference `json:"shadow"`
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
