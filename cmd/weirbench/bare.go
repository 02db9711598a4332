package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/pump"
)

func bareCommand() *cobra.Command {
	s, err := bench.ScenarioNamed("ceiling")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	measure := s.Measure
	cmd := &cobra.Command{
		Use:   "bare",
		Short: "Measure what targets and sink carry without a collector",
		Long: `Measure what targets and sink carry, on the cores that they have when a ceiling is
measured, with nothing but a pump between them, which has the collector's core: it
scrapes, and writes what is always the same, as fast as it goes. A ceiling that is
near that is the bench's own.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if measure <= 0 {
				return fmt.Errorf("cannot measure for %s", measure)
			}
			return s.Load.Validate()
		},
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "weirbench")
			if err != nil {
				return fmt.Errorf("cannot make a directory: %w", err)
			}
			defer os.RemoveAll(dir)
			b, err := bench.Carry(cmd.Context(), s, measure, dir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%.0f samples/s; targets used %.2f and the sink %.2f cores, the pump %.2f of its one.\n", b.Rate, b.Target, b.Sink, b.Pumped)
			return err
		}),
	}
	cmd.Flags().DurationVar(&measure, "measure", measure, "time of measuring")
	loadFlags(cmd.Flags(), &s.Load)
	return cmd
}

// pumpCommand runs the pump for Carry.
func pumpCommand() *cobra.Command {
	o := pump.Options{Workers: 4}
	cmd := &cobra.Command{
		Use:    "pump TARGET...",
		Short:  "Scrape targets and write to a sink what is always the same, as fast as it goes",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if o.Write == "" || o.Workers < 1 {
				return errors.New("cannot pump: --write says where to, and it takes at least 1 of --workers")
			}
			return nil
		},
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			o.Targets = args
			began := time.Now()
			n, err := pump.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d samples in %s\n", n, time.Since(began).Round(time.Millisecond))
			return err
		}),
	}
	cmd.Flags().StringVar(&o.Write, "write", "", "URL of the sink")
	cmd.Flags().IntVar(&o.Workers, "workers", o.Workers, "how many do it at once")
	return cmd
}
