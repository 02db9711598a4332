//go:build unix

package state

import (
	"errors"
	"os"
)

// syncDir forces the names in a directory to the disk.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
