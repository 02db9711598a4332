package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/journal"
)

func journalCommand(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Look into the journals of what waits to be sent",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("say what to do with the journals: stats")
			}
			return fmt.Errorf("journal cannot %q, only stats", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(journalStatsCommand(t))
	return cmd
}

// journalFormats are the output formats of journal stats.
var journalFormats = []string{"text", "json"}

func journalStatsCommand(t *terminal) *cobra.Command {
	var storage, format string
	cmd := &cobra.Command{
		Use:   "stats [DIR]",
		Short: "Count what waits in journals: samples and series, lines and streams, age",
		Long: `Count the data that waits in the journals of a storage directory, or in one
journal: of prometheus.remote_write, loki.write and scripted sinks. Nothing is
changed or locked, so weir may be running; the result can then include part of a
concurrent change. Damaged files and blocks are listed. A journal of a kind that
this version of weir does not support is reported as unknown, not as damaged.`,
		Example: `  weir journal stats
  weir journal stats --storage.path=/var/lib/weir
  weir journal stats --format=json data-weir/journal/name-far`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("storage.path") {
				return errors.New("give a directory or --storage.path, not both")
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		ValidArgsFunction: directories,
		RunE: failed(func(_ *cobra.Command, args []string) error {
			dir := storage
			if len(args) > 0 {
				dir = args[0]
			} else if err := checkStorage(dir); err != nil {
				return err
			}
			return journalStats(t.out, dir, format)
		}),
	}
	storageFlag(cmd.Flags(), &storage)
	cmd.Flags().StringVar(&format, "format", "text", `"text" or "json"`)
	return cmd
}

func journalStats(out io.Writer, dir, format string) error {
	if format != "text" && format != "json" {
		return cannotStart(fmt.Errorf(`--format must be "text" or "json", not %q`, format))
	}
	reports, err := inspectJournals(dir)
	if err != nil {
		return err
	}
	if format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(reports)
	}
	if len(reports) == 0 {
		_, err := fmt.Fprintf(out, "there are no journals in %s\n", config.Printable(dir))
		return err
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := r.write(out, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// inspectJournals inspects the journals of a storage directory, or one journal.
func inspectJournals(dir string) ([]journalReport, error) {
	dirs, err := journal.Find(dir)
	if err != nil && checkStorage(dir) != nil { // otherwise, no sink has created a journal yet
		return nil, err
	}
	reports := []journalReport{}
	for _, d := range dirs {
		r, err := inspectJournal(d)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// write prints the report as text.
func (r journalReport) write(out io.Writer, now time.Time) error {
	var errs []error
	line := func(name, format string, args ...any) {
		_, err := fmt.Fprintf(out, "%-10s%s\n", name, config.Printable(fmt.Sprintf(format, args...)))
		errs = append(errs, err)
	}
	line("journal", "%s", r.Dir)
	if to := strings.TrimSpace(r.Endpoint + " " + r.URL); to != "" {
		line("endpoint", "%s", to)
	}
	if r.Node != "" {
		line("node", "%s", r.Node)
	}
	line("component", "%s", r.Component)
	line("on disk", "%s in %s", bytesText(r.Bytes), count(len(r.Segments), "segment"))
	if r.Blocks == 0 {
		line("pending", "nothing")
	} else {
		line("pending", "%s in %s, %s%s", r.records(), count(int(r.Blocks), "block"), bytesText(r.Payload), r.audience())
		line("oldest", "%s old", age(now, r.Oldest))
	}
	if !r.Newest.IsZero() {
		line("newest", "%s old", age(now, r.Newest))
	}
	low, busy := uint64(0), 0
	for _, l := range r.Shards {
		if low == 0 || l.Next < low {
			low = l.Next
		}
		if l.Blocks > 0 {
			busy++
		}
	}
	if r.CursorSaved.IsZero() {
		line("cursor", "none yet: everything is pending")
	} else {
		line("cursor", "at block %d, saved %s ago; %d of %s wait", low, age(now, r.CursorSaved), busy, count(len(r.Shards), "shard"))
	}
	for _, s := range r.Segments {
		if s.Damaged > 0 {
			line("damaged", "%s: %d bytes are no blocks", s.File, s.Damaged)
		}
		if s.Unfinished > 0 {
			line("damaged", "%s: %d bytes at its end are no block, unless weir is writing one", s.File, s.Unfinished)
		}
	}
	for _, what := range r.Report.Damage {
		line("damaged", "%s", what)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Damaged)) {
		line("damaged", "%s cannot be read: %s", count(r.Damaged[why], "block"), why)
	}
	for _, f := range r.Aside {
		line("set aside", "%s", f)
	}
	for _, p := range r.Problems {
		line("problem", "%s", p)
	}
	return errors.Join(errs...)
}

func age(now, at time.Time) time.Duration {
	d := now.Sub(at)
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// bytesText formats a size as in the config.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f := float64(n)
	i := 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%dB", n)
	}
	return fmt.Sprintf("%.1f%s", f, units[i])
}
