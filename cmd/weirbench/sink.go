package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/sink"
)

func sinkCommand() *cobra.Command {
	var untilEOF bool
	addr := "127.0.0.1:0"
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Be an endpoint of metrics and logs that counts",
		Long: `Be a remote write endpoint, 1.0 and 2.0, that counts what comes and finds gaps,
duplicates and disorder in the sequence series of weirbench's targets; and an
endpoint of Loki's push, and of lines as they are by HTTP and TCP, that does so
with the numbered lines of weirbench's files.

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
			lines, err := s.ListenLines()
			if err != nil {
				return err
			}
			h := bench.Hello{Control: base, Write: base + "/api/v1/write", Push: base + "/loki/api/v1/push", Lines: base + "/lines", TCP: lines.Address()}
			ctx, err := hello(cmd, h, untilEOF, fmt.Sprintf("control %s\nwrite   %s\npush    %s\nlines   %s\nlines   tcp://%s\n", h.Control, h.Write, h.Push, h.Lines, h.TCP))
			if err != nil {
				return err
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			wg.Go(func() { lines.Serve(ctx) })
			return s.Serve(ctx)
		}),
	}
	cmd.Flags().StringVar(&addr, "listen-addr", addr, "address")
	untilEOFFlag(cmd.Flags(), &untilEOF)
	return cmd
}
