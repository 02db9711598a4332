package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
	"github.com/weir-run/weir/engine/pkg/remote/git"
	"github.com/weir-run/weir/engine/pkg/remote/oci"
)

// defaultStorage is the default of --storage.path.
const defaultStorage = "./data-weir"

// packages returns the cache of remote content in a storage directory.
func packages(storage string) *remote.Store {
	return remote.New(remote.Options{
		Dir:       filepath.Join(cmp.Or(storage, defaultStorage), "packages"),
		Fetchers:  map[string]remote.Fetcher{remote.Git: git.Fetcher{}, remote.HTTP: remote.Web{}, remote.OCI: oci.Fetcher{}},
		UserAgent: "weir/" + version,
	})
}

// lockedRemote is remote content that a config imports.
type lockedRemote struct {
	engine.RemoteImport
	entry   pkg.Locked
	content remote.Content
}

// fetchRemotes fetches the remote content that a config imports, and that which this
// content imports. It writes the entries in weir.lock as it goes, because a module in
// a source can only be read with its entry. If the config has mistakes, they are
// printed, and the error has no text.
func fetchRemotes(ctx context.Context, t *terminal, path, storage string) ([]lockedRemote, error) {
	store := packages(storage)
	done := map[string]lockedRemote{}
	for {
		e, err := lookingEngine(path, "", storage, scriptsUse{})
		if err != nil {
			return nil, err
		}
		imports, cfg, ds := e.Remotes(path)
		if ds.HasErrors() {
			return nil, printMistakes(t, cfg, ds)
		}
		var all []lockedRemote
		var errs []error
		fresh := false
		for _, im := range imports {
			key := im.Source.String()
			if r, ok := done[key]; ok {
				all = append(all, r)
				continue
			}
			c, err := store.Fetch(ctx, im.Source, im.Access)
			if err == nil {
				var entry pkg.Locked
				if entry, err = engine.Entry(key, c); err == nil {
					err = lockRemote(path, entry)
				}
				done[key] = lockedRemote{im, entry, c}
				fresh = true
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", im.Position, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return nil, printAll(t, err)
		}
		if !fresh {
			return all, nil
		}
	}
}

// lockRemote writes the entry of a source into the lock file of a config.
func lockRemote(path string, entry pkg.Locked) error {
	in := &imported{lock: pkg.LockPath(path)}
	l, err := in.read()
	if err != nil {
		return err
	}
	l.Set(entry)
	text, err := l.Text()
	if err != nil {
		return err
	}
	return writeText(in.lock, text)
}

// printMistakes prints the mistakes in a config and returns the error for the exit
// code.
func printMistakes(t *terminal, cfg *config.Config, ds config.Diagnostics) error {
	if err := ds.Write(t.err, cfg.Files, t.errColor); err != nil {
		return err
	}
	errs, _ := errors.AsType[config.Diagnostics](ds.Err())
	fmt.Fprintln(t.err, count(len(errs), "mistake"))
	return &exitError{code: exitFailed}
}

// vendored returns the folder with the copies of remote content next to a config.
func vendored(path string) string {
	return filepath.Join(filepath.Dir(pkg.LockPath(path)), pkg.VendorDir)
}
