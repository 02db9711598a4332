package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/faults"
)

func faultsCommand() *cobra.Command {
	o := faults.Options{Weir: "bin/weir", Targets: 10, Series: 300, Interval: 500 * time.Millisecond, Steps: 60, StopWithin: 5 * time.Second, MinDrain: 0.9, Patience: 2 * time.Minute}
	var keep string
	var disk bool
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Break what can break around a weir, and see whether anything is lost",
		Long: `Run a weir under load and kill it, stop it, reload it, break its endpoint, fill
its disk and flip bits in its journal, in an order that a seed decides. What
happened is printed, a line for each fault; the last line says how many samples
were lost: they were accepted, and did not arrive.

Every sample is a number in a sequence, so a gap cannot be hidden. Numbers may
be missing only where a death met a scrape before it was accepted, where weir
logged that a batch was refused until the next one was due, or where a block was damaged here, and
then weir must have counted as many. A duplicate must have the same series,
timestamp and value. While the endpoint takes 1.5 s for each answer, a backlog
forms, and it must drain at 90 % of the rate that the endpoint can take. The same
seed breaks the same things in the same order.

weir is also killed while it compiles, tests, compares (shadow), refuses, builds or swaps
a saved script, during a canary, its promotion and its rollback, and during weir rollback
and a change of the config. The endpoint is dead, slow or answers errors meanwhile. After
the restart, the version must run that the history on disk names: the pinned version; the
last active one if the version on disk was refused or rolled back, fails its tests or was
in a canary; or else the version on disk.

The disk is filled where users may have namespaces (Linux).`,
		Example: `  weirbench faults
  weirbench faults --seed=42 --steps=200 --weir=/tmp/weir`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if o.Targets < 1 || o.Series < 1 || o.Steps < 1 || o.Interval < 100*time.Millisecond || o.StopWithin <= 0 || o.Patience <= 0 || o.MinDrain < 0 || o.MinDrain > 1 {
				return errors.New("cannot break anything so: give at least 1 target, series and step, an interval of at least 100ms, times that are more than 0, and a drain from 0 to 1")
			}
			return nil
		},
		RunE: ran(func(cmd *cobra.Command, _ []string) (err error) {
			if o.Seed == 0 {
				o.Seed = uint64(rand.Uint32())
			}
			if o.Dir = keep; keep == "" {
				if o.Dir, err = os.MkdirTemp("", "weirbench"); err != nil {
					return fmt.Errorf("cannot make a directory: %w", err)
				}
				defer os.RemoveAll(o.Dir)
			}
			if o.Dir, err = filepath.Abs(o.Dir); err != nil {
				return err
			}
			if o.Weir, err = findWeir(o.Weir); err != nil {
				return err
			}
			return breakThings(cmd, o, disk)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Weir, "weir", o.Weir, "the program")
	f.IntVar(&o.Targets, "targets", o.Targets, "number of targets")
	f.IntVar(&o.Series, "series", o.Series, "series of each target")
	f.DurationVar(&o.Interval, "interval", o.Interval, "scrape interval")
	f.IntVar(&o.Steps, "steps", o.Steps, "number of faults; every kind comes before one comes again")
	f.StringVar(&o.Only, "only", "", "only faults whose name has this in it, such as kill")
	f.Uint64Var(&o.Seed, "seed", 0, "decides the order (default: another one each time)")
	f.DurationVar(&o.StopWithin, "stop-within", o.StopWithin, "how long SIGTERM may take while the endpoint is dead")
	f.Float64Var(&o.MinDrain, "min-drain", o.MinDrain, "least part of what a slow endpoint can take at which a backlog must drain")
	f.DurationVar(&o.Patience, "patience", o.Patience, "how long anything that must happen may take")
	f.StringVar(&keep, "keep", "", "folder to keep config and journal in")
	f.BoolVar(&disk, "disk", false, "mount a small file system on data in the folder, and fill it")
	_ = f.MarkHidden("disk") // fails only if the flag does not exist
	return cmd
}

// breakThings performs the run: if possible, in a separate process that may mount
// a disk to fill; otherwise, in this one.
func breakThings(cmd *cobra.Command, o faults.Options, disk bool) error {
	o.Out = cmd.OutOrStdout()
	if disk {
		if err := faults.MountDisk(o.Dir); err != nil {
			return err
		}
		o.Disk = true
		return faults.Run(cmd.Context(), o)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot start the run: %w", err)
	}
	alone := exec.CommandContext(cmd.Context(), exe, "faults", "--disk", "--weir="+o.Weir, "--keep="+o.Dir, "--seed="+strconv.FormatUint(o.Seed, 10),
		"--targets="+strconv.Itoa(o.Targets), "--series="+strconv.Itoa(o.Series), "--interval="+o.Interval.String(),
		"--only="+o.Only, "--steps="+strconv.Itoa(o.Steps), "--stop-within="+o.StopWithin.String(), fmt.Sprint("--min-drain=", o.MinDrain), "--patience="+o.Patience.String())
	alone.Stdout, alone.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	alone.Cancel = func() error { return alone.Process.Signal(os.Interrupt) }
	faults.Alone(alone)
	if err := alone.Start(); err != nil {
		if !faults.NotAlone(err) {
			return fmt.Errorf("cannot start the run: %w", err)
		}
		fmt.Fprintf(o.Out, "the disk is not filled: no small file system can be made here (%v)\n", err)
		return faults.Run(cmd.Context(), o)
	}
	if err := alone.Wait(); err != nil {
		return fmt.Errorf("cannot call that nothing lost: %w", err)
	}
	return nil
}
