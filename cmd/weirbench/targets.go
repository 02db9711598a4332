package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

func targetsCommand() *cobra.Command {
	var untilEOF bool
	o := target.Defaults()
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "Be many targets",
		Long: `Be many targets, each on a port of its own, with what a service in Go shows:
counters, gauges, histograms and summaries. Nine of ten values change from
scrape to scrape. The series weirbench_sequence_* count the scrapes of their
target, from 1000000001.

Commands: GET /stats, POST /freeze (answer 503 from now on) and POST /thaw at
the control address.`,
		Example: "  weirbench targets --targets=10 --series=500 --format=openmetrics",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Validate() },
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			s, err := target.Listen(o)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("control http://%s\n", s.Control())
			for _, a := range s.Addresses() {
				text += fmt.Sprintf("target  http://%s/metrics\n", a)
			}
			ctx, err := hello(cmd, bench.Hello{Control: "http://" + s.Control(), Targets: s.Addresses()}, untilEOF, text)
			if err != nil {
				return err
			}
			return s.Serve(ctx)
		}),
	}
	f := cmd.Flags()
	loadFlags(f, &o)
	f.DurationVar(&o.Interval, "interval", 0, "at which they are to be scraped, to count what is late")
	untilEOFFlag(f, &untilEOF)
	return cmd
}
