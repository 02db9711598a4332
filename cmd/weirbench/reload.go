package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/reload"
)

func reloadCommand() *cobra.Command {
	o := reload.Options{Weir: "bin/weir", Saves: 1000, Every: 100 * time.Millisecond, Nodes: 100, Targets: 20, Series: 1000, Lines: 5000,
		Configs: []int{500, 5000}, Changes: 20, DeadFor: time.Minute, Parts: reload.AllParts(), Patience: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Save scripts and configs under load and measure the reloads",
		Long: `Run weir under load, save a script and the config again and again, and print a table
of targets and results:

  save to serving   time from the start of a save until a sender has the answer to the
                    first push that the new version processed, less the 20 ms for which
                    weir waits for further changes
  pause             answer time of the last push before a swap or of the first push
                    after it, whichever is longer, less the median answer time; the
                    table also shows the same value for pushes without a swap
  errors of scripts calls of the script that failed; there must be none
  lost, duplicated  numbered samples and lines that do not arrive, or arrive twice
  levels            goroutines, heap, descriptors and watches after all saves,
                    compared with their level after the first 20 saves
  nodes rebuilt     for a change of one component in a large config
  dead endpoint     one save per second while the endpoints refuse everything: each
                    version must process data, /api/v0/status must respond, and the
                    resident memory must not grow by more than 20 %

A sender pushes one sample every millisecond to prometheus.receive_http. The script or
component that is saved writes its version into a label of this sample, so the delay
between the script and the endpoint, debounce of the endpoint and scrape intervals do not
count.

Below the table, the distribution of the measured times follows.

The exit code is 1 if something was lost or duplicated, a call of the script failed, a
level did not return, more than one node was rebuilt, or a version did not process data.
A missed time is only printed, because times depend on the machine.`,
		Example: `  weirbench reload
  weirbench reload --parts=dead --dead-for=10m
  weirbench reload --saves=100 --configs=500 --dead-for=10s --weir=/tmp/weir`,
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
			return reload.Run(cmd.Context(), o)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Weir, "weir", o.Weir, "the program")
	f.IntVar(&o.Saves, "saves", o.Saves, "number of saves of the script")
	f.DurationVar(&o.Every, "every", o.Every, "minimum time between two saves")
	f.IntVar(&o.Nodes, "nodes", o.Nodes, "nodes in the config of the script that is saved")
	f.IntVar(&o.Targets, "targets", o.Targets, "number of targets, scraped every second")
	f.IntVar(&o.Series, "series", o.Series, "series of each target")
	f.IntVar(&o.Lines, "lines", o.Lines, "log lines per second")
	f.IntSliceVar(&o.Configs, "configs", o.Configs, "sizes of the configs of which one component is changed")
	f.IntVar(&o.Changes, "changes", o.Changes, "number of changes of each of these configs")
	f.DurationVar(&o.DeadFor, "dead-for", o.DeadFor, "time with dead endpoints and one save per second")
	f.StringSliceVar(&o.Parts, "parts", o.Parts, "parts to measure")
	f.DurationVar(&o.Patience, "patience", o.Patience, "maximum time to wait for each expected event")
	return cmd
}
