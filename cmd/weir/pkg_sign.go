package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg"
)

func pkgKeygenCommand(t *terminal) *cobra.Command {
	var passwordFile string
	cmd := &cobra.Command{
		Use:   "keygen FILE",
		Short: "Create a key pair that signs packages",
		Long: `Create a key pair for 'weir pkg sign': the private key in FILE, which only you can
read, and the public key in FILE.pub. Configs name the public key in their block
policy. The files are those of minisign, so its keys can be used as well.

With --password-file, the private key is encrypted with the first line of that file.
Encryption, and each use of the key, needs 1 GiB of memory.`,
		Example: `  weir pkg keygen ~/.config/weir/packages.key
  weir pkg keygen --password-file=<(pass show weir) packages.key`,
		Args:              oneKeyFile,
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			return keygen(t, args[0], passwordFile)
		}),
	}
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "file whose first line is the password of the private key")
	return cmd
}

func oneKeyFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("pkg keygen takes one file for the private key, not %d", len(args))
	}
	return nil
}

func keygen(t *terminal, path, passwordFile string) error {
	for _, p := range []string{path, path + ".pub"} {
		if exists(p) {
			return fmt.Errorf("cannot create %s: it exists", p)
		}
	}
	password, err := readPassword(passwordFile)
	if err != nil {
		return err
	}
	k, err := pkg.NewPrivateKey()
	if err != nil {
		return err
	}
	text, err := k.Text(password)
	if err != nil {
		return err
	}
	if err := files.CreatePrivate(path, text); err != nil {
		return err
	}
	if err := createFile(path+".pub", k.PublicText()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "created %s and %s of key %s\nrequire_signature = [%q]\n", config.Printable(path), config.Printable(path+".pub"), k.Public().ID(), k.Public())
	return err
}

// readPassword returns the first line of a file, or "" if no file is named.
func readPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := files.ReadArgument(file, 64<<10)
	if err != nil {
		return "", fmt.Errorf("cannot read the password: %w", err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
		return "", fmt.Errorf("cannot read the password: the first line of %s is empty", file)
	}
	return string(line), nil
}

// signingKey are the flags of commands that sign a package.
type signingKey struct{ file, passwordFile string }

func (s *signingKey) flags(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&s.file, name, "", "private key that signs the package: a file of minisign or of 'weir pkg keygen'")
	cmd.Flags().StringVar(&s.passwordFile, "password-file", "", "file whose first line is the password of the private key")
}

func (s *signingKey) read() (pkg.PrivateKey, error) {
	text, err := files.ReadArgument(s.file, 64<<10)
	if err != nil {
		return pkg.PrivateKey{}, fmt.Errorf("cannot read the private key: %w", err)
	}
	password, err := readPassword(s.passwordFile)
	if err != nil {
		return pkg.PrivateKey{}, err
	}
	k, err := pkg.ParsePrivateKey(text, password)
	if errors.Is(err, pkg.ErrPassword) && password == "" {
		err = fmt.Errorf("%w: name a file with the password in --password-file", err)
	}
	if err != nil {
		return k, fmt.Errorf("cannot use the private key in %s: %w", s.file, err)
	}
	return k, nil
}

func pkgSignCommand(t *terminal) *cobra.Command {
	var key signingKey
	cmd := &cobra.Command{
		Use:   "sign PACKAGE",
		Short: "Sign the checksums of a package",
		Long: `Sign weir-package.sum of a package with a private key, and write the signature to
weir-package.sum.minisig. The files of the package must have these checksums: run
'weir pkg lock' first. A config that names the public key in its block policy uses
only packages that have a signature and have not changed since. minisign can verify
the signature as well.`,
		Example: `  weir pkg sign --key=packages.key packages/acme
  minisign -V -p packages.key.pub -m packages/acme/weir-package.sum`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("key") {
				return errors.New("name the private key: --key=FILE; 'weir pkg keygen' creates one")
			}
			return onePackage(cmd, args)
		},
		ValidArgsFunction: directories,
		RunE: failed(func(_ *cobra.Command, args []string) error {
			return signPackage(t, args[0], key)
		}),
	}
	key.flags(cmd, "key")
	return cmd
}

func signPackage(t *terminal, dir string, key signingKey) error {
	k, err := key.read()
	if err != nil {
		return err
	}
	m, s, err := verified(dir)
	if err != nil {
		return printAll(t, err)
	}
	if err := writeText(filepath.Join(dir, pkg.SignatureName), k.Sign(m, s)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "signed %s with key %s: %s\n", title(m), k.Public().ID(), s.Digest())
	return err
}
