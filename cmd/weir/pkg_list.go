package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
)

func pkgListCommand(t *terminal) *cobra.Command {
	var asJSON bool
	var storage string
	cmd := &cobra.Command{
		Use:   "list CONFIG",
		Short: "List the packages that a config imports",
		Long: `List the packages that a config imports, a file or a directory of *.alloy files:
their names, versions, licences, folders and digests. The last column compares the
digest with weir.lock: locked, changed, or not locked.`,
		Example: `  weir pkg list config.alloy
  weir pkg list --json /etc/weir`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("pkg list takes one config, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			return listPackages(t, args[0], storage, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	storageFlag(cmd.Flags(), &storage)
	return cmd
}

// listedPackage is a package in the output of weir pkg list.
type listedPackage struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	License string   `json:"license"`
	Path    string   `json:"path"` // relative to the lock file, or a remote source
	Needs   []string `json:"needs"`
	Digest  string   `json:"digest"`
	Lock    string   `json:"lock"` // "locked", "changed" or "not locked"
}

func listPackages(t *terminal, path, storage string, asJSON bool) error {
	in, err := importedBy(t, path, storage)
	if err != nil {
		return err
	}
	lock, err := in.read()
	if err != nil {
		return printAll(t, err)
	}
	list := []listedPackage{}
	for _, dir := range in.packages {
		m, s, err := inspected(fromHere(dir))
		if err != nil {
			return printAll(t, err)
		}
		p := listedPackage{Name: m.Name, Version: m.Version, License: m.License, Needs: append([]string{}, m.Needs...), Digest: s.Digest(), Lock: "locked"}
		if p.Path, err = in.path(dir); err != nil {
			return err
		}
		if want := lock.Package(p.Path); want == nil {
			p.Lock = "not locked"
		} else if want.Digest != p.Digest {
			p.Lock = "changed"
		}
		list = append(list, p)
	}
	for _, p := range lock.Packages {
		if p.Source != "" {
			list = append(list, listedPackage{Name: p.Name, Version: p.Version, Path: p.Source, Needs: []string{}, Digest: p.Digest, Lock: "locked"})
		}
	}
	if asJSON {
		return writeJSON(t, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(t.out, "%s imports no packages\n", config.Printable(path))
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tLICENSE\tPATH\tDIGEST\tLOCK")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Version, p.License, config.Printable(p.Path), p.Digest, p.Lock)
	}
	return w.Flush()
}
