package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/control"
)

func promoteCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "promote NODE", Short: "Have the canary of a node take over",
		Long: `End the canary of a node and have its new version take over. The name of a node is
the name of its block in the config, such as metrics.relabel.default. Without a canary,
the exit code is 1; it is 2 when no weir runs with the storage path.`,
		Example: "  weir promote my.script.default",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("promote takes the name of one node")
			}
			return nil
		},
		ValidArgsFunction: scriptedNodes(&dir),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			return promote(cmd.Context(), t, dir, args[0])
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}

// promote has the canary of a node take over and prints the answer.
func promote(ctx context.Context, t *terminal, dir, node string) error {
	u := &url.URL{Path: "/api/v0/control/" + node + "/canary/promote"}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, control.URL(u.String()), nil)
	if err != nil {
		return fmt.Errorf("cannot ask weir: %w", err)
	}
	body, err := answer(control.Client(dir).Do(req))
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(t.out, body); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	return nil
}
