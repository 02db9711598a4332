package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// TokenFile is the name of the file in the storage directory with the token for
// API clients over TCP.
const TokenFile = "weir.token"

// WriteToken writes a token to the file TokenFile of a storage directory, which
// only its user can read. An existing file is replaced and not written into,
// because another user may have created it, or be able to read it. The caller
// has locked the directory.
//
// On Windows, the file has the permissions of the directory.
func WriteToken(storage, token string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write the token: %w", err)
		}
	}()
	path := filepath.Join(storage, TokenFile)
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp))
		}
	}()
	if err := private(f); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.WriteString(token + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// private returns an error if a file created with mode 0600 has another mode,
// as on a file system without permissions.
func private(f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if mode := fi.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return fmt.Errorf("other users can read files in %s: a new file has mode %#o there, not 0600; choose a --storage.path on another file system", filepath.Dir(f.Name()), mode)
	}
	return nil
}
