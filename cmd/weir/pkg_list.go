package main

import (
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
)

func pkgListCommand(t *terminal) *cobra.Command {
	var asJSON bool
	var storage string
	cmd := &cobra.Command{
		Use:   "list CONFIG",
		Short: "List the packages that a config imports",
		Long: `List the packages that a config imports, a file or a directory of *.alloy files:
their names, versions, licences, folders and digests. The column LOCK compares the
digest with weir.lock: locked, changed, or not locked. The column SIGNER has the key
that the signature of the package names; 'weir audit' says whether it is valid.`,
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
	// Signer is nil if the package is not signed.
	Signer *packageSigner `json:"signer"`
}

// packageSigner is who has signed a package.
type packageSigner struct {
	Key     string `json:"key"`     // the ID of the key that the signature names
	Comment string `json:"comment"` // as signed: name, version and digest
	// Trusted says that the block policy of the config names the key, and that the
	// signature is valid. Otherwise, the signature was not verified, or Problem says why it
	// is refused.
	Trusted bool   `json:"trusted"`
	Problem string `json:"problem,omitempty"`
}

// String describes the signer.
func (s *packageSigner) String() string {
	switch {
	case s == nil:
		return "not signed"
	case s.Trusted:
		return "key " + s.Key
	case s.Problem != "":
		return "key " + s.Key + ", refused: " + s.Problem
	}
	return "key " + s.Key + ", not verified: the config has no policy with require_signature"
}

// signerOf returns the signer of the package in dir, whose files have the checksums.
func signerOf(dir string, s pkg.Sums, p *pkg.Policy) *packageSigner {
	g, err := pkg.ReadSignature(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &packageSigner{Problem: err.Error()}
	}
	out := &packageSigner{Key: g.KeyID, Comment: g.Comment}
	if len(p.Keys) == 0 {
		return out
	}
	if _, err := pkg.VerifySignature(dir, s, p.Keys); err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Trusted = true
	return out
}

// listed describes the packages that a config imports. The error joins all mistakes.
func (in *imported) listed() ([]listedPackage, error) {
	lock, err := in.read()
	if err != nil {
		return nil, err
	}
	list := []listedPackage{}
	var errs []error
	for _, dir := range in.packages {
		m, s, err := inspected(fromHere(dir))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p := listedPackage{Name: m.Name, Version: m.Version, License: m.License, Needs: append([]string{}, m.Needs...), Digest: s.Digest(), Lock: "locked",
			Signer: signerOf(dir, s, in.policy)}
		if p.Path, err = in.path(dir); err != nil {
			return nil, err
		}
		if want := lock.Package(p.Path); want == nil {
			p.Lock = "not locked"
		} else if want.Digest != p.Digest {
			p.Lock = "changed"
		}
		list = append(list, p)
	}
	for _, l := range lock.Packages {
		if l.Source == "" || !in.remotes[l.Source] {
			continue
		}
		p := listedPackage{Name: l.Name, Version: l.Version, Path: l.Source, Needs: []string{}, Digest: l.Digest, Lock: "locked"}
		if c, err := packages(in.storage).Open(l.Digest, vendored(in.config)); err == nil && l.Name != "" {
			m, err := pkg.ReadManifest(c.Dir)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			p.License, p.Needs, p.Signer = m.License, append(p.Needs, m.Needs...), signerOf(c.Dir, c.Sums, in.policy)
		}
		list = append(list, p)
	}
	return list, errors.Join(errs...)
}

func listPackages(t *terminal, path, storage string, asJSON bool) error {
	in, err := importedBy(t, path, storage)
	if err != nil {
		return err
	}
	list, err := in.listed()
	if err != nil {
		return printAll(t, err)
	}
	if asJSON {
		return writeJSON(t, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(t.out, "%s imports no packages\n", config.Printable(path))
		return err
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tLICENSE\tPATH\tDIGEST\tLOCK\tSIGNER")
	for _, p := range list {
		signer := "-"
		if p.Signer != nil {
			signer = p.Signer.Key
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Version, p.License, config.Printable(p.Path), p.Digest, p.Lock, config.Printable(signer))
	}
	return w.Flush()
}
