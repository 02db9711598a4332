package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

func checkCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "check CONFIG|SCRIPTS...",
		Short: "Find every mistake in a config or in scripts",
		Long: `Read a config, a file or a directory of *.alloy files, with the scripts it uses
and their tests, and report every mistake at once, each with its place. Nothing is
started, and no hook is run: what is found in a script is what its text tells.
Misspelt fields, operations and arguments, wrong constants, expressions and
patterns are mistakes; what may be meant so is a warning.

With files or folders of scripts in place of a config, look at those, used or not.

The exit code is 0 when there is no mistake (there may be warnings), 1 when
there is one.`,
		Example: `  weir check config.alloy
  weir check --scripts=../scripts /etc/weir
  weir check scripts`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1 && !slices.ContainsFunc(args, isScripts):
				return fmt.Errorf("check takes one config, not %d; several files of a directory are one config", len(args))
			case len(args) == 0:
				return errors.New("name a config to check, a file or a directory of *.alloy files")
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, isScripts) {
				return checkScripts(t, dir, args)
			}
			return checkConfig(t, dir, args[0])
		}),
	}
	cmd.Flags().StringVar(&dir, "scripts", "", "folder of scripts (default: scripts beside the config)")
	return cmd
}

func checkConfig(t *terminal, dir, path string) error {
	var warned warnings
	e, err := lookingEngine(path, dir, warned.checks())
	if err != nil {
		return err
	}
	cfg, ds := e.Check(path)
	if err := errors.Join(warned.write(t), ds.Write(t.err, cfg.Files, t.errColor)); err != nil {
		return err
	}
	if ds.HasErrors() {
		errs, _ := errors.AsType[config.Diagnostics](ds.Err())
		fmt.Fprintln(t.err, count(len(errs), "mistake"))
		return &exitError{code: exitFailed}
	}
	_, err = fmt.Fprintf(t.out, "%s is fine: %s\n", path, count(len(cfg.Blocks), "block"))
	return err
}

// checkScripts looks at files and folders of scripts.
func checkScripts(t *terminal, dir string, paths []string) error {
	var warned warnings
	checks := warned.checks()
	checks.Test = nil // test files are named, or in the folders
	n, err := scripttest.Check(scripttest.Options{
		Languages: languages(), Modules: stdlib.Modules(), Embedded: scripts.FS, Dir: dir, Paths: paths, Checks: checks,
	})
	if n == 0 {
		return cannotStart(err)
	}
	if e := warned.write(t); e != nil {
		return e
	}
	if err != nil {
		mistakes := flat(err)
		for _, e := range mistakes {
			fmt.Fprintln(t.err, config.Printable(e.Error()))
		}
		fmt.Fprintln(t.err, count(len(mistakes), "mistake"))
		return &exitError{code: exitFailed}
	}
	_, err = fmt.Fprintf(t.out, "%s fine\n", map[bool]string{true: "1 script is", false: count(n, "script") + " are"}[n == 1])
	return err
}

// flat are the errors that err joins.
func flat(err error) (out []error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			out = append(out, flat(e)...)
		}
		return out
	}
	return []error{err}
}

// isScripts reports whether a path is a script, or a folder with scripts and
// without a config.
func isScripts(path string) bool {
	script := func(name string) bool {
		return slices.ContainsFunc(languages(), func(l scripting.Language) bool { return slices.Contains(l.Extensions(), filepath.Ext(name)) })
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil && script(path)
	}
	if configs, _ := filepath.Glob(filepath.Join(path, "*.alloy")); len(configs) > 0 {
		return false
	}
	found := false
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error { // what cannot be read is no script
		if err == nil && !d.IsDir() && script(p) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// warnings are what was found in scripts that need not be a mistake.
type warnings struct{ found []*scripting.Error }

func (w *warnings) checks() *scripting.Checks {
	warn := func(e *scripting.Error) { w.found = append(w.found, e) }
	return &scripting.Checks{Warn: warn, Test: scripttest.CheckTest(languages(), stdlib.Modules(), warn)}
}

// write prints them, in the order of their places.
func (w *warnings) write(t *terminal) error {
	slices.SortStableFunc(w.found, func(a, b *scripting.Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line, a.Col-b.Col)
	})
	seen := map[string]bool{} // a file may belong to several scripts
	for _, e := range w.found {
		head, rest, _ := strings.Cut(e.Error(), ": ")
		text := fmt.Sprintf("%s: %s: %s", head, paint(t.errColor, "33", "warning"), config.Printable(rest))
		if seen[text] {
			continue
		}
		seen[text] = true
		if _, err := fmt.Fprintln(t.err, text); err != nil {
			return err
		}
	}
	return nil
}

// lookingEngine returns an engine that looks at the config in path and runs
// nothing. checks look at the scripts; nil: as a run does.
func lookingEngine(path, scripts string, checks *scripting.Checks) (*engine.Engine, error) {
	dir, err := scriptsDir(scripts, path)
	if err != nil {
		return nil, cannotStart(err)
	}
	catalogs, err := catalogs(dir, nil, checks)
	if err != nil {
		return nil, cannotStart(err)
	}
	services, err := newServices("", "", io.Discard)
	if err != nil {
		return nil, cannotStart(err)
	}
	e, err := engine.New(engine.Options{Catalogs: catalogs, Scripts: importScripts(nil, checks), Unsupported: unsupported(), Services: services.all(), Version: version, NoWatch: true})
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
