package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/sink"
)

func sinkCommand() *cobra.Command {
	var untilEOF bool
	addr := "127.0.0.1:0"
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Be a remote write endpoint that counts",
		Long: `Be a remote write endpoint, 1.0 and 2.0, that counts what comes and finds gaps,
duplicates and disorder in the sequence series of weirbench's targets.

Commands, at the same address: GET /stats (?detail=1: by instance), POST /reset,
DELETE /faults, and POST /faults with what to do to the next writes, in JSON:

  status, retry_after (s)  answer so          delay        answer later ("2s")
  reset                    break connections  half_close   close our half of them
  requests                 for so many        for          for so long ("30s")
  keep                     take the samples before`,
		Example: `  weirbench sink --listen-addr=127.0.0.1:9090
  curl -d '{"status": 429, "retry_after": 5, "for": "30s"}' 127.0.0.1:9090/faults`,
		Args: cobra.NoArgs,
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			s, err := sink.Listen(addr)
			if err != nil {
				return err
			}
			base := "http://" + s.Address()
			h := bench.Hello{Control: base, Write: base + "/api/v1/write"}
			ctx, err := hello(cmd, h, untilEOF, fmt.Sprintf("control %s\nwrite   %s\n", h.Control, h.Write))
			if err != nil {
				return err
			}
			return s.Serve(ctx)
		}),
	}
	cmd.Flags().StringVar(&addr, "listen-addr", addr, "address")
	untilEOFFlag(cmd.Flags(), &untilEOF)
	return cmd
}
