package files

import (
	"errors"
	"os"
)

// Unfinished ends the name of a file that [Replace] has not finished. After a crash,
// such a file can be left.
const Unfinished = ".tmp"

// Replace writes one of weir's own files, which only its user can read. A reader sees
// the old or the new content, also after a crash of weir; with sync, also after a crash
// of the machine. The directory of the file must exist.
func Replace(path string, content []byte, sync bool) error {
	f, err := os.OpenFile(path+Unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+Unfinished, path)
	}
	if err != nil {
		_ = os.Remove(path + Unfinished) // report the first error
	}
	return err
}
