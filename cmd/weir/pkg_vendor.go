package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
)

func pkgVendorCommand(t *terminal) *cobra.Command {
	var storage string
	cmd := &cobra.Command{
		Use:   "vendor CONFIG",
		Short: "Copy locked remote content into the folder vendor",
		Long: `Copy the content of import.git, import.http and import.oci that is locked in weir.lock
from the cache in --storage.path into the folder vendor next to the config. weir reads
content from this folder if it is not in its cache, so a host without a network needs
only the config, weir.lock and vendor. Content that is no longer locked is removed from
vendor. Nothing is fetched: run 'weir pkg lock' first.`,
		Example:           `  weir pkg vendor config.alloy`,
		Args:              onePackage,
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			return vendor(t, args[0], storage)
		}),
	}
	storageFlag(cmd.Flags(), &storage)
	return cmd
}

// vendor copies the locked content of a config into its folder vendor.
func vendor(t *terminal, path, storage string) error {
	if _, err := os.Stat(path); err != nil {
		return cannotStart(err)
	}
	lock, err := (&imported{lock: pkg.LockPath(path)}).read()
	if err != nil {
		return printAll(t, err)
	}
	store, to := packages(storage), vendored(path)
	keep := map[string]bool{}
	var errs []error
	for _, p := range lock.Packages {
		if p.Source == "" {
			continue
		}
		c, err := store.Open(p.Digest, to)
		if err == nil {
			err = store.Copy(c, to)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot copy %s with %s: %w; run 'weir pkg lock %s' to fetch it", p.Source, p.Digest, err, quoted(path)))
		}
		keep[p.Digest] = true
	}
	if err := errors.Join(errs...); err != nil {
		return printAll(t, err)
	}
	old, err := os.ReadDir(filepath.Join(to, "sha256"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return printAll(t, err)
	}
	for _, e := range old {
		if !keep["sha256:"+e.Name()] {
			errs = append(errs, os.RemoveAll(filepath.Join(to, "sha256", e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return printAll(t, err)
	}
	_, err = fmt.Fprintf(t.out, "copied %s into %s\n", count(len(keep), "source"), config.Printable(to))
	return err
}
