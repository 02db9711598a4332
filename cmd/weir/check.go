package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripting/versions"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

func checkCommand(t *terminal) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check CONFIG|SCRIPTS...",
		Short: "Find every mistake in a config or in scripts",
		Long: `Read a config, a file or a directory of *.alloy files, with the scripts it uses
and their tests, and report all mistakes with their positions. Nothing is started
and no hook is run: scripts are analysed statically. Misspelt fields, operations
and arguments and invalid constants, expressions and patterns are mistakes.
Anything that may be intentional is a warning. A finding in a script ends with its
identifier in brackets; 'weir help ID' describes it, and a comment
-- weir:ignore ID REASON (// in JavaScript) in its line or above it hides it.

With --test, also run the tests of the scripts that the config uses, with the
limits that they have when weir starts. Without it, a warning names the scripts that
failed their tests when weir ran with this --storage.path.

If the arguments are files or folders of scripts instead of a config, check these
scripts, whether or not a config uses them.

The exit code is 0 if there are no mistakes, even if there are warnings, and 1
otherwise.`,
		Example: `  weir check config.alloy
  weir check --test config.alloy
  weir check --scripts=../scripts /etc/weir
  weir check scripts`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("scripts.test-limit") && (!o.test || slices.ContainsFunc(args, isScripts)):
				return errors.New("--scripts.test-limit is for --test with a config")
			case len(args) > 1 && !slices.ContainsFunc(args, isScripts):
				return fmt.Errorf("check takes one config, not %d; several files of a directory are one config", len(args))
			case o.testLimit <= 0:
				return fmt.Errorf("--scripts.test-limit must be greater than 0s, not %s", o.testLimit)
			case len(args) == 0:
				return errors.New("name a config to check, a file or a directory of *.alloy files")
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, isScripts) {
				return checkScripts(cmd.Context(), t, o, args)
			}
			return checkConfig(cmd.Context(), t, o, args[0])
		}),
	}
	cmd.Flags().StringVar(&o.scripts, "scripts", "", "folder of scripts (default: scripts next to the config)")
	storageFlag(cmd.Flags(), &o.storage)
	cmd.Flags().BoolVar(&o.test, "test", false, "run the tests of scripts")
	cmd.Flags().DurationVar(&o.testLimit, "scripts.test-limit", scripttest.DefaultReloadLimit, "with --test and a config: as for weir run")
	return cmd
}

// checkOptions are the flags of weir check.
type checkOptions struct {
	scripts string
	storage string
	test    bool

	testLimit time.Duration
}

// versions returns the store of test results, which contains the scripts that
// failed their tests. With --test, the tests are run instead.
func (o checkOptions) versions() *versions.Store {
	if o.test {
		return nil
	}
	return versions.Look(o.storage)
}

func checkConfig(ctx context.Context, t *terminal, o checkOptions, path string) error {
	var warned warnings
	e, err := lookingEngine(path, o.scripts, o.storage, scriptsUse{checks: warned.checks(), versions: o.versions(), testLimit: o.testLimit})
	if err != nil {
		return err
	}
	defer e.close()
	cfg, ds := e.Check(path)
	if err := errors.Join(warned.write(t), ds.Write(t.err, cfg.Files, t.errColor)); err != nil {
		return err
	}
	var tested []string
	var failures []error
	if o.test {
		for _, c := range e.all() {
			names, errs := registry.TestLoaded(ctx, c)
			tested, failures = append(tested, names...), append(failures, errs...)
		}
		for _, err := range failures {
			fmt.Fprintln(t.err, config.Printable(err.Error()))
		}
	}
	errs, _ := errors.AsType[config.Diagnostics](ds.Err())
	if n := len(errs) + len(failures); n > 0 {
		fmt.Fprintln(t.err, count(n, "mistake"))
		return &exitError{code: exitFailed}
	}
	passed := ""
	if o.test {
		passed = fmt.Sprintf(", tests of %s passed", count(len(tested), "script"))
	}
	_, err = fmt.Fprintf(t.out, "%s is fine: %s%s\n", path, count(len(cfg.Blocks), "block"), passed)
	return err
}

// checkScripts checks files and folders of scripts.
func checkScripts(ctx context.Context, t *terminal, o checkOptions, paths []string) error {
	var warned warnings
	checks := warned.checks()
	checks.Test = nil // test files are named on the command line or are in the folders
	what := scripttest.Options{
		Languages: languages(), Modules: stdlib.Modules(), Pipelines: pipelines(), Embedded: scripts.FS, Dir: o.scripts, Paths: paths, Checks: checks, Versions: o.versions(),
	}
	n, err := scripttest.Check(what)
	if n == 0 {
		return cannotStart(err)
	}
	if e := warned.write(t); e != nil {
		return e
	}
	mistakes := flat(err)
	for _, e := range mistakes {
		fmt.Fprintln(t.err, config.Printable(e.Error()))
	}
	wrong, passed := len(mistakes), ""
	if o.test && wrong == 0 {
		if wrong, passed, err = runTests(ctx, t, what); err != nil {
			return cannotStart(err)
		}
	}
	if wrong > 0 {
		fmt.Fprintln(t.err, count(wrong, "mistake"))
		return &exitError{code: exitFailed}
	}
	_, err = fmt.Fprintf(t.out, "%s fine%s\n", map[bool]string{true: "1 script is", false: count(n, "script") + " are"}[n == 1], passed)
	return err
}

// runTests runs the tests of files and folders of scripts and prints those that
// fail. It returns the number of failures and a clause about the tests that
// passed.
func runTests(ctx context.Context, t *terminal, what scripttest.Options) (failed int, passed string, err error) {
	pretty := scripttest.Pretty{W: t.err, Clean: config.Printable, Paint: func(code, s string) string { return paint(t.errColor, code, s) }}
	what.Checks, what.Versions = nil, nil
	what.Each = func(f scripttest.File) {
		if f.Failing() {
			pretty.File(f)
		}
	}
	r, err := scripttest.Run(ctx, what)
	if errors.Is(err, scripttest.ErrNoTests) {
		return 0, ", without tests", nil
	}
	if err != nil {
		return 0, "", err
	}
	return r.Count(scripttest.Failed) + r.Count(scripttest.Broken), ", " + count(r.Count(scripttest.Passed), "test") + " passed", nil
}

// flat returns the errors that err joins, or nothing if err is nil.
func flat(err error) (out []error) {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			out = append(out, flat(e)...)
		}
		return out
	}
	return []error{err}
}

// isScripts reports whether a path is a script, or a folder that contains scripts
// but no config.
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
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error { // files that cannot be read do not count
		if err == nil && !d.IsDir() && script(p) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// warnings are findings in scripts that are not necessarily mistakes.
type warnings struct{ found []*scripting.Error }

func (w *warnings) checks() *registry.Checks {
	warn := func(e *scripting.Error) { w.found = append(w.found, e) }
	return &registry.Checks{Warn: warn, Test: scripttest.CheckTest(languages(), stdlib.Modules(), warn)}
}

// write prints the warnings, sorted by position.
func (w *warnings) write(t *terminal) error {
	for _, e := range w.sorted() {
		head, rest, _ := strings.Cut(e.Error(), ": ")
		if _, err := fmt.Fprintf(t.err, "%s: %s: %s\n", head, paint(t.errColor, "33", "warning"), config.Printable(rest)); err != nil {
			return err
		}
	}
	return nil
}

// sorted returns the warnings by position, without repetitions: a file may belong to
// several scripts.
func (w *warnings) sorted() []*scripting.Error {
	slices.SortStableFunc(w.found, func(a, b *scripting.Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line, a.Col-b.Col)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(w.found), func(e *scripting.Error) bool {
		text := e.Error()
		defer func() { seen[text] = true }()
		return seen[text]
	})
}

// looker is an engine that checks a config without running it.
type looker struct {
	*engine.Engine
	catalogs []component.Catalog
	imported []component.Catalog // of import.scripts
}

// all returns the catalogs of everything that the engine has loaded.
func (l *looker) all() []component.Catalog { return append(l.catalogs, l.imported...) }

// close ends what the engine has started.
func (l *looker) close() { closePlugins(l.catalogs) }

// lookingEngine returns an engine that checks the config in path. If storage is
// not empty, the engine also checks arguments that refer to files in the storage
// directory.
func lookingEngine(path, scripts, storage string, use scriptsUse) (*looker, error) {
	dir, err := scriptsDir(scripts, path)
	if err != nil {
		return nil, cannotStart(err)
	}
	l := &looker{}
	l.catalogs, err = use.catalogs(dir)
	if err != nil {
		return nil, cannotStart(err)
	}
	services, err := newServices(port{}, "", io.Discard)
	if err != nil {
		return nil, cannotStart(err)
	}
	imported := func(namespace, dir string) (component.Catalog, error) {
		c, err := use.imported(namespace, dir)
		if err == nil {
			l.imported = append(l.imported, c)
		}
		return c, err
	}
	o := engine.Options{Catalogs: l.catalogs, Scripts: imported, GrantKinds: scripting.NeedKinds, Unsupported: unsupported(), Services: services.all(), StoragePath: storage, Version: version, NoWatch: true, Remote: packages(storage)}
	if use.lookupEnv != nil {
		o.Getenv = func(name string) string { v, _ := use.lookupEnv(name); return v }
	}
	l.Engine, err = engine.New(o)
	if err != nil {
		return nil, cannotStart(err)
	}
	return l, nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
