package main

import (
	"errors"
	"net/http"

	"github.com/spf13/cobra"
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
			answer, err := ask(cmd.Context(), dir, http.MethodPost, controlPath(args[0], "canary/promote", ""), "", nil)
			return copyAnswer(t.out, answer, err)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}
