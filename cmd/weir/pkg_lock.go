package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
)

func pkgLockCommand(t *terminal) *cobra.Command {
	var storage string
	cmd := &cobra.Command{
		Use:   "lock PACKAGE|CONFIG",
		Short: "Write the checksums of a package, or the lock file of a config",
		Long: `For the folder of a package, check its manifest and write the checksums of its files
to weir-package.sum, in the format of sha256sum. Files and folders whose names begin
with a dot do not belong to the package.

For a config, a file or a directory of *.alloy files, write weir.lock next to it: the
version and the digest of each package that the config imports. The files of these
packages must have the checksums of weir-package.sum. Changed entries are listed
with the previous and the new digest. Local folders without a manifest are not
locked.

The content of import.git, import.http and import.oci is fetched, put into the cache in
--storage.path, and locked as well. weir run uses only content that is locked. If a
source cannot be fetched, its entry is not changed.`,
		Example: `  weir pkg lock packages/acme
  weir pkg lock config.alloy`,
		Args:              onePackage,
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if pkg.IsPackage(args[0]) {
				return lockPackage(t, args[0])
			}
			return lockConfig(cmd.Context(), t, args[0], storage)
		}),
	}
	storageFlag(cmd.Flags(), &storage)
	return cmd
}

func lockPackage(t *terminal, dir string) error {
	m, s, err := inspected(dir)
	if err != nil {
		return printAll(t, err)
	}
	if err := writeText(filepath.Join(dir, pkg.SumsName), s.Text()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "locked %s: %s, %s\n", title(m), count(len(s), "file"), s.Digest())
	return err
}

func lockConfig(ctx context.Context, t *terminal, path, storage string) error {
	if _, err := os.Stat(path); err != nil {
		return cannotStart(err)
	}
	old, err := (&imported{lock: pkg.LockPath(path)}).read()
	if err != nil {
		return printAll(t, err)
	}
	remotes, err := fetchRemotes(ctx, t, path, storage)
	if err != nil {
		return err
	}
	in, err := importedBy(t, path, storage) // now with the modules in remote content
	if err != nil {
		return err
	}
	now := &pkg.Lock{}
	for _, r := range remotes {
		now.Set(r.entry)
	}
	var errs []error
	for _, dir := range in.packages {
		m, s, err := verified(fromHere(dir))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		rel, err := in.path(dir)
		if err != nil {
			return err
		}
		now.Packages = append(now.Packages, pkg.Locked{Path: rel, Name: m.Name, Version: m.Version, Digest: s.Digest()})
	}
	if err := errors.Join(errs...); err != nil {
		return printAll(t, err)
	}
	text, err := now.Text()
	if err != nil {
		return err
	}
	if len(now.Packages)+len(old.Packages) == 0 {
		_, err := fmt.Fprintf(t.out, "%s imports no packages\n", config.Printable(path))
		return err
	}
	if err := writeText(in.lock, text); err != nil {
		return err
	}
	_, err = io.WriteString(t.out, config.Printable(changes(old, now)))
	return err
}

// changes describes the difference between two lock files.
func changes(old, now *pkg.Lock) string {
	var b strings.Builder
	for _, p := range now.Packages {
		switch was := old.Find(p); {
		case was == nil:
			fmt.Fprintf(&b, "added     %s: %s\n", p.Where(), described(p))
		case *was != p:
			fmt.Fprintf(&b, "changed   %s: %s\n     from %s\n", p.Where(), described(p), described(*was))
		default:
			fmt.Fprintf(&b, "unchanged %s: %s\n", p.Where(), described(p))
		}
	}
	for _, p := range old.Packages {
		if now.Find(p) == nil {
			fmt.Fprintf(&b, "removed   %s: %s\n", p.Where(), cmp.Or(strings.TrimSpace(p.Name+" "+p.Version), p.Digest))
		}
	}
	return b.String()
}

// described returns the name, the version and the digest of an entry.
func described(p pkg.Locked) string {
	if p.Name == "" {
		return p.Digest
	}
	return p.Name + " " + p.Version + ", " + p.Digest
}

func pkgVerifyCommand(t *terminal) *cobra.Command {
	var storage string
	cmd := &cobra.Command{
		Use:   "verify PACKAGE|CONFIG",
		Short: "Compare a package with its checksums, or a config with its lock file",
		Long: `For the folder of a package, check its manifest and compare its files with
weir-package.sum. For a config, verify each package that it imports and compare the
packages with weir.lock. Remote content is verified in the cache and in the folder
vendor; nothing is fetched. Every difference is reported with the expected and the
actual digest. Run the command in CI and before a deployment: weir itself does not
compare local packages, because it reloads files that are saved.

The exit code is 0 if there are no differences, and 1 otherwise.`,
		Example: `  weir pkg verify packages/acme
  weir pkg verify config.alloy`,
		Args:              onePackage,
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			if !pkg.IsPackage(args[0]) {
				return verifyConfig(t, args[0], storage)
			}
			m, s, err := verified(args[0])
			if err != nil {
				return printAll(t, err)
			}
			_, err = fmt.Fprintf(t.out, "%s is fine: %s, %s\n", title(m), count(len(s), "file"), s.Digest())
			return err
		}),
	}
	storageFlag(cmd.Flags(), &storage)
	return cmd
}

func verifyConfig(t *terminal, path, storage string) error {
	in, err := importedBy(t, path, storage)
	if err != nil {
		return err
	}
	lock, err := in.read()
	if err != nil {
		return printAll(t, err)
	}
	var errs []error
	seen := map[string]bool{}
	for _, dir := range in.packages {
		rel, err := in.path(dir)
		if err != nil {
			return err
		}
		seen[rel] = true
		m, s, err := verified(fromHere(dir))
		switch want := lock.Package(rel); {
		case err != nil:
			errs = append(errs, err)
		case want == nil:
			errs = append(errs, fmt.Errorf("%s lacks %s, %s with %s: run 'weir pkg lock %s' to add it", in.lock, rel, title(m), s.Digest(), quoted(path)))
		case want.Digest != s.Digest():
			errs = append(errs, fmt.Errorf("%s is not the package in %s: expected %s %s with %s, got %s with %s; run 'weir pkg lock %s' to accept it",
				rel, in.lock, want.Name, want.Version, want.Digest, title(m), s.Digest(), quoted(path)))
		case want.Name != m.Name || want.Version != m.Version:
			errs = append(errs, fmt.Errorf("%s calls %s %s %s, but its manifest calls it %s: run 'weir pkg lock %s'", in.lock, rel, want.Name, want.Version, title(m), quoted(path)))
		}
	}
	for _, p := range lock.Packages {
		switch {
		case p.Source != "" && !in.remotes[p.Source]:
			errs = append(errs, fmt.Errorf("%s has %s, which the config does not import: run 'weir pkg lock %s' to remove it", in.lock, p.Source, quoted(path)))
		case p.Source != "":
			if _, err := packages(storage).Open(p.Digest, vendored(path)); err != nil {
				errs = append(errs, fmt.Errorf("cannot verify %s, expected %s: %w", p.Source, p.Digest, err))
			}
		case !seen[p.Path]:
			errs = append(errs, fmt.Errorf("%s has %s, which the config does not import: run 'weir pkg lock %s' to remove it", in.lock, p.Path, quoted(path)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return printAll(t, err)
	}
	_, err = fmt.Fprintf(t.out, "%s is fine: %s\n", config.Printable(path), count(len(in.packages)+len(in.remotes), "package"))
	return err
}
