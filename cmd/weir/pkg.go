package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/scripting/registry"
)

func pkgCommand(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pkg",
		Short: "Create packages and verify what configs import",
		Long: `A package is a folder of scripts and modules that several configs use. The author
describes it in weir-package.toml; 'weir pkg lock' writes the checksums of all files
to weir-package.sum. A config imports the folders scripts and modules of a package
with import.scripts and import.file. For a config, 'weir pkg lock' writes the digest
of each package to weir.lock, next to the config, and 'weir pkg verify' reports every
file that has changed since then.`,
		Example: `  weir pkg init --license=Apache-2.0 packages/acme
  weir pkg lock packages/acme
  weir pkg lock config.alloy
  weir pkg verify config.alloy`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a command, such as 'weir pkg verify': 'weir pkg --help' lists them")
			}
			return fmt.Errorf("weir pkg has no command %q: 'weir pkg --help' lists them", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(pkgInitCommand(t), pkgLockCommand(t), pkgVerifyCommand(t), pkgListCommand(t), pkgVendorCommand(t), pkgKeygenCommand(t), pkgSignCommand(t))
	return cmd
}

// onePackage checks the arguments of commands for a package or a config.
func onePackage(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return errors.New("name the folder of a package, or a config")
	case 1:
		return nil
	}
	return fmt.Errorf("pkg %s takes one package or config, not %d", cmd.Name(), len(args))
}

// needsOf returns what the scripts of a package need, sorted. The error joins the
// mistakes in the scripts.
func needsOf(dir string) ([]string, error) {
	scripts := filepath.Join(dir, pkg.ScriptsDir)
	if _, err := files.Stat(scripts); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c, err := scriptsUse{}.imported("package", scripts)
	if err != nil {
		return nil, err
	}
	needs := map[string]bool{}
	var errs []error
	for _, name := range c.Names() {
		r, ok := c.Lookup(name)
		if !ok {
			continue
		}
		if r.Err != nil {
			errs = append(errs, r.Err)
			continue
		}
		if a, ok := r.About.(*registry.Audit); ok {
			for _, n := range a.Needs {
				needs[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(needs)), errors.Join(errs...)
}

// inspected reads the manifest of a package, compares it with the scripts, and
// computes the checksums.
func inspected(dir string) (*pkg.Manifest, pkg.Sums, error) {
	m, err := pkg.ReadManifest(dir)
	if err != nil {
		return nil, nil, err
	}
	needs, err := needsOf(dir)
	if err != nil {
		return nil, nil, err
	}
	manifest := filepath.Join(dir, pkg.ManifestName)
	var errs []error
	for _, n := range needs {
		if !slices.Contains(m.Needs, n) {
			errs = append(errs, fmt.Errorf("%s: needs lacks %q, which a script of the package needs", manifest, n))
		}
	}
	for _, n := range m.Needs {
		if !slices.Contains(needs, n) {
			errs = append(errs, fmt.Errorf("%s: needs has %q, which no script of the package needs", manifest, n))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	s, err := pkg.Compute(dir)
	return m, s, err
}

// verified is inspected for a package whose files must have the checksums of
// weir-package.sum.
func verified(dir string) (*pkg.Manifest, pkg.Sums, error) {
	m, got, err := inspected(dir)
	if err != nil {
		return nil, nil, err
	}
	want, err := pkg.ReadSums(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no %s: run 'weir pkg lock %s' to write it", dir, pkg.SumsName, quoted(dir))
	}
	if err != nil {
		return nil, nil, err
	}
	if changes := got.Changes(want); len(changes) > 0 {
		return nil, nil, fmt.Errorf("%s does not match %s: if the changes are intended, run 'weir pkg lock %s'; otherwise, get the package again%s", dir, pkg.SumsName, quoted(dir), pkg.List(changes))
	}
	return m, got, nil
}

// imported are the packages of a config.
type imported struct {
	config   string
	storage  string          // the storage directory, with the cache
	lock     string          // path of the lock file
	packages []string        // absolute folders of local packages, sorted
	remotes  map[string]bool // sources
	policy   *pkg.Policy
}

// importedBy returns the packages that a config imports. If the config has
// mistakes, they are printed, and the error has no text.
func importedBy(t *terminal, path, storage string) (*imported, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, cannotStart(err)
	}
	e, err := lookingEngine(path, "", storage, scriptsUse{})
	if err != nil {
		return nil, err
	}
	defer e.close()
	imports, cfg, ds := e.Imports(path)
	if ds.HasErrors() {
		return nil, printMistakes(t, cfg, ds)
	}
	return importedIn(e, path, storage, imports)
}

// importedIn returns the packages that a config imports, as far as it can be read.
// imports are its local imports.
func importedIn(e *looker, path, storage string, imports []engine.Import) (*imported, error) {
	in := &imported{config: path, storage: storage, lock: pkg.LockPath(path), remotes: map[string]bool{}, policy: e.Policy(path)}
	remotes, _, _ := e.Remotes(path)
	for _, r := range remotes {
		in.remotes[r.Source.String()] = true
	}
	for _, im := range imports {
		abs, err := filepath.Abs(im.Path)
		if err != nil {
			return nil, err
		}
		dir, err := pkg.Root(abs)
		if err != nil {
			return nil, fmt.Errorf("cannot find the package of %s: %w", im.ID, err)
		}
		if dir != "" && !slices.Contains(in.packages, dir) {
			in.packages = append(in.packages, dir)
		}
	}
	slices.Sort(in.packages)
	return in, nil
}

// path returns the path of a package in the lock file.
func (in *imported) path(dir string) (string, error) {
	home, err := filepath.Abs(filepath.Dir(in.lock))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(home, dir)
	if err != nil {
		return "", fmt.Errorf("cannot write the path of %s into %s: %w", dir, in.lock, err)
	}
	return filepath.ToSlash(rel), nil
}

// read returns the lock file, which is empty if it does not exist.
func (in *imported) read() (*pkg.Lock, error) {
	l, err := pkg.ReadLock(in.lock)
	if errors.Is(err, fs.ErrNotExist) {
		return &pkg.Lock{}, nil
	}
	return l, err
}

// writeText writes a file of the user, which may exist.
func writeText(path, text string) error {
	if exists(path) {
		return files.Rewrite(path, text)
	}
	return createFile(path, text)
}

// printAll prints each of the errors that err joins, and returns the error for the
// exit code.
func printAll(t *terminal, err error) error {
	mistakes := flat(err)
	for _, e := range mistakes {
		fmt.Fprintln(t.err, config.Printable(e.Error()))
	}
	fmt.Fprintln(t.err, count(len(mistakes), "mistake"))
	return &exitError{code: exitFailed}
}

// title names a package with its version.
func title(m *pkg.Manifest) string { return m.Name + " " + m.Version }
