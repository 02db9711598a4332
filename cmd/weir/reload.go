package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
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
	text, ok, err := postTo(ctx, dir, "/-/reload")
	if err != nil {
		return err
	}
	if !ok {
		fmt.Fprintln(t.err, text)
		return &exitError{code: exitFailed}
	}
	_, err = fmt.Fprintln(t.out, text)
	return err
}
