package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/config"
)

func checkCommand(t *terminal) *cobra.Command {
	var scripts string
	cmd := &cobra.Command{
		Use:   "check CONFIG",
		Short: "Find every mistake in a config",
		Long: `Read a config, a file or a directory of *.alloy files, with the scripts it uses,
and report every mistake at once, each with its place. Nothing is started.

The exit code is 0 when there is no mistake (there may be warnings), 1 when
there is one.`,
		Example: `  weir check config.alloy
  weir check --scripts=../scripts /etc/weir`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("check takes one config, not %d; several files of a directory are one config", len(args))
			case len(args) == 0:
				return errors.New("name a config to check, a file or a directory of *.alloy files")
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			path := args[0]
			e, err := lookingEngine(path, scripts)
			if err != nil {
				return err
			}
			cfg, ds := e.Check(path)
			if err := ds.Write(t.err, cfg.Files, t.errColor); err != nil {
				return err
			}
			if ds.HasErrors() {
				errs, _ := errors.AsType[config.Diagnostics](ds.Err())
				fmt.Fprintln(t.err, count(len(errs), "mistake"))
				return &exitError{code: exitFailed}
			}
			_, err = fmt.Fprintf(t.out, "%s is fine: %s\n", path, count(len(cfg.Blocks), "block"))
			return err
		}),
	}
	cmd.Flags().StringVar(&scripts, "scripts", "", "folder of scripts (default: scripts beside the config)")
	return cmd
}

// lookingEngine returns an engine that looks at the config in path and runs
// nothing.
func lookingEngine(path, scripts string) (*engine.Engine, error) {
	dir, err := scriptsDir(scripts, path)
	if err != nil {
		return nil, cannotStart(err)
	}
	catalogs, err := catalogs(dir, nil)
	if err != nil {
		return nil, cannotStart(err)
	}
	services, err := newServices("", "", io.Discard)
	if err != nil {
		return nil, cannotStart(err)
	}
	e, err := engine.New(engine.Options{Catalogs: catalogs, Scripts: importScripts(nil), Services: services.all(), Version: version, NoWatch: true})
	if err != nil {
		return nil, cannotStart(err)
	}
	return e, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
