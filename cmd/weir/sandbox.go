package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weir/sandbox"
)

// sandboxCommand is the command that weir run --sandbox starts as a child
// process.
func sandboxCommand() *cobra.Command {
	var o sandbox.Options
	cmd := &cobra.Command{
		Use:    "sandbox",
		Short:  "Be the throwaway Prometheus of weir run --sandbox",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			// A signal that ends weir may reach the whole process group, as
			// Ctrl-C does. The parent still has samples to send, and closes the
			// standard input of this process when it is done.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			// Without time and level, because the parent logs the text as an
			// error.
			o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
				if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
					return slog.Attr{}
				}
				return a
			}}))
			return sandbox.Serve(cmd.Context(), o, os.Stdin, os.Stdout)
		}),
	}
	cmd.Flags().StringVar(&o.ListenAddr, "listen-addr", "127.0.0.1:0", "address; a free port if this one is taken")
	return cmd
}
