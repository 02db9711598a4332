package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
)

func pkgInitCommand(t *terminal) *cobra.Command {
	m := pkg.Manifest{API: pkg.API}
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write the manifest of a package",
		Long: `Write weir-package.toml, the manifest of a package, in a folder, which is created if
it does not exist; the default is the working directory. The scripts of the package
belong in its folder scripts, and its modules in its folder modules. If there are
scripts, the manifest lists what they need. An existing manifest is not changed.`,
		Example: `  weir pkg init --license=Apache-2.0 packages/acme
  weir pkg init --license=proprietary --name=acme/http --version=1.0.0`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("pkg init takes one folder, not %d", len(args))
			}
			if !cmd.Flags().Changed("license") {
				return errors.New("name the licence of the package: --license=Apache-2.0, another SPDX identifier, or --license=proprietary")
			}
			return errors.Join(pkg.CheckLicense(m.License), pkg.CheckVersion(m.Version))
		},
		ValidArgsFunction: directories,
		RunE: failed(func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return pkgInit(t, dir, m)
		}),
	}
	cmd.Flags().StringVar(&m.Name, "name", "", "name of the package (default: the name of the folder)")
	cmd.Flags().StringVar(&m.Version, "version", "0.1.0", "semantic version of the package")
	cmd.Flags().StringVar(&m.License, "license", "", `SPDX identifier of the licence, or "proprietary"; required`)
	return cmd
}

func pkgInit(t *terminal, dir string, m pkg.Manifest) error {
	if m.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		m.Name = filepath.Base(abs)
		if err := pkg.CheckName(m.Name); err != nil {
			return cannotStart(fmt.Errorf("cannot use the name of the folder as the name of the package, use --name: %w", err))
		}
	} else if err := pkg.CheckName(m.Name); err != nil {
		return cannotStart(err)
	}
	path := filepath.Join(dir, pkg.ManifestName)
	if exists(path) {
		return fmt.Errorf("cannot create %s: it exists", path)
	}
	var err error
	if m.Needs, err = needsOf(dir); err != nil {
		return printAll(t, err)
	}
	if err := createFile(path, m.Text()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "created %s of %s\n", config.Printable(path), title(&m))
	return err
}
