package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weirbench/bench"
	"github.com/weir-run/weir/cmd/weirbench/floor"
	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

func filesCommand() *cobra.Command {
	var untilEOF bool
	o := logfiles.Options{Dir: ".", Files: 10, Rotation: logfiles.Rename, Keep: 2}
	cmd := &cobra.Command{
		Use:   "files",
		Short: "Write log files",
		Long: `Write log files, with lines of about 200 bytes that are numbered, so that the
sink of weirbench can tell what is missing, came again or came late.

Commands at the control address: GET /stats (?detail=1: by file and level), POST
/write?lines=N (now, over all files) and POST /rate?lines=N (a second from now on).`,
		Example: `  weirbench files --dir=/tmp/logs --files=3 --json --rotate-at=1000000
  curl -X POST '127.0.0.1:40001/rate?lines=1000'`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Validate() },
		RunE: ran(func(cmd *cobra.Command, _ []string) error {
			s, err := logfiles.Listen(o)
			if err != nil {
				return err
			}
			h := bench.Hello{Control: "http://" + s.Control()}
			ctx, err := hello(cmd, h, untilEOF, fmt.Sprintf("control %s\nfiles   %s\n", h.Control, o.Dir))
			if err != nil {
				return err
			}
			return s.Serve(ctx)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", o.Dir, "folder for the files")
	f.IntVar(&o.Files, "files", o.Files, "how many files")
	f.BoolVar(&o.JSON, "json", o.JSON, "write JSON, not plain text")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "of what the lines say")
	f.Int64Var(&o.RotateAt, "rotate-at", o.RotateAt, "bytes from which a file is rotated, 0: never")
	f.StringVar((*string)(&o.Rotation), "rotation", string(o.Rotation), "rename, copytruncate or recreate")
	f.IntVar(&o.Keep, "keep", o.Keep, "how many rotated files remain of each")
	untilEOFFlag(f, &untilEOF)
	return cmd
}

func floorCommand() *cobra.Command {
	push := ""
	cmd := &cobra.Command{
		Use:   "floor PATTERN",
		Short: "Bring lines from files to a push endpoint with the least work that does it",
		Long: `Read the files that match a pattern, split them into lines, encode, compress and
post them, and do nothing else: what a collector of logs cannot go below.`,
		Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if push == "" {
				return fmt.Errorf("cannot push: --push says where to")
			}
			return nil
		},
		RunE: ran(func(cmd *cobra.Command, args []string) error {
			return floor.Run(cmd.Context(), args[0], push)
		}),
	}
	cmd.Flags().StringVar(&push, "push", "", "URL to push to")
	return cmd
}
