package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Rewrite atomically replaces a file of the user by one with the content and with the
// owner and permissions of the old file, which must exist. If path is a symbolic link, its
// target is replaced. The new file has another name at first, which begins with .weir-.
func Rewrite(path, content string) (err error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	fi, err := os.Stat(resolved)
	if err != nil {
		return err
	}
	// The name begins with a dot, so that a running weir does not load the file
	// as a config.
	tmp, err := os.CreateTemp(filepath.Dir(resolved), ".weir-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, err)
			_ = os.Remove(tmp.Name()) // report the first error
		}
	}()
	_, err = tmp.WriteString(content)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := keepOwner(tmp.Name(), fi); err != nil {
		return err
	}
	if err := os.Chmod(tmp.Name(), fi.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), resolved)
}

// Create creates a file of the user with the content. The error wraps fs.ErrExist if there
// is a file or a symbolic link.
func Create(path, content string) error { return create(path, content, 0o666) } // subject to the umask

// CreatePrivate is like Create, for a file that only its owner can read.
func CreatePrivate(path, content string) error { return create(path, content, 0o600) }

func create(path, content string, mode os.FileMode) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("cannot create %s: %w", path, err)
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // report the first error
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
