package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/observe"
)

func observeCommand() *cobra.Command {
	o := observe.Options{Weir: "bin/weir", Targets: 20, Series: 1000, Pages: 50, Rounds: 5, Measure: 20 * time.Second, Settle: time.Second, Patience: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Measure what taps, weir top and pages cost a weir under load",
		Long: `Run weir under load and print its CPU time while nobody looks at it, and with one tap,
one 'weir top' and many pages of the web UI. The node that is tapped changes every
sample, which is the worst case for ':diff'.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Validate() },
		RunE: ran(func(cmd *cobra.Command, _ []string) (err error) {
			if o.Weir, err = findWeir(o.Weir); err != nil {
				return err
			}
			if o.Dir, err = os.MkdirTemp("", "weirbench"); err != nil {
				return fmt.Errorf("cannot make a directory: %w", err)
			}
			defer os.RemoveAll(o.Dir)
			o.Out = cmd.OutOrStdout()
			return observe.Run(cmd.Context(), o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Weir, "weir", o.Weir, "the program")
	f.IntVar(&o.Targets, "targets", o.Targets, "number of targets, scraped every second")
	f.IntVar(&o.Series, "series", o.Series, "series of each target")
	f.IntVar(&o.Pages, "pages", o.Pages, "number of pages of the web UI")
	f.IntVar(&o.Nodes, "nodes", o.Nodes, "number of further nodes, which get all samples; with many of them, choose few targets and series")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "number of rounds")
	f.DurationVar(&o.Measure, "measure", o.Measure, "time of measuring each observer in each round")
	f.DurationVar(&o.Settle, "settle", o.Settle, "time before each measurement, in which pages load; it does not count")
	return cmd
}
