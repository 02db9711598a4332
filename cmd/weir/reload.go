package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
)

func reloadCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make a running weir read its config and scripts again",
		Long: `Make the weir that runs with the storage path read its config and its scripts
again. If the config contains a mistake, the running version stays active and the
exit code is 1. The exit code is 2 when no weir runs with the storage path.`,
		Example: `  weir reload
  weir reload --storage.path=/var/lib/weir`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("reload takes no %q: the running weir knows its config; choose the weir with --storage.path", args[0])
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, _ []string) error { return reload(cmd.Context(), t, dir) }),
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}

func reload(ctx context.Context, t *terminal, dir string) error {
	if err := checkStorage(dir); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, control.URL("/-/reload"), nil)
	if err != nil {
		return fmt.Errorf("cannot ask for a reload: %w", err)
	}
	resp, err := control.Client(dir).Do(req)
	if err != nil {
		if e, ok := errors.AsType[*control.NotRunningError](err); ok {
			return cannotStart(e)
		}
		return fmt.Errorf("cannot ask for a reload: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	text := config.Printable(strings.TrimSpace(string(body)))
	if resp.StatusCode != http.StatusOK {
		fmt.Fprintln(t.err, text)
		return &exitError{code: exitFailed}
	}
	_, err = fmt.Fprintln(t.out, text)
	return err
}
