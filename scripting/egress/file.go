package egress

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-run/weir/engine/files"
)

// ReadFile reads a file below dir. It follows symbolic links only if they do
// not lead out of dir, even if links change concurrently; dir itself may be a
// link. It reads only regular files of at most limit bytes.
func ReadFile(dir, rel string, limit int64) ([]byte, error) {
	return files.Do(filepath.Join(dir, filepath.FromSlash(rel)), "reading", func() ([]byte, error) { return readFile(dir, rel, limit) })
}

func readFile(dir, rel string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", rel, plain(err))
	}
	defer root.Close()
	f, err := root.OpenFile(rel, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", rel, plain(err))
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", rel, plain(err))
	case !fi.Mode().IsRegular():
		return nil, fmt.Errorf("cannot read %s: it is no regular file", rel)
	case fi.Size() > limit:
		return nil, tooLarge(rel, limit)
	}
	body, err := io.ReadAll(&bounded{r: f, left: limit, err: tooLarge(rel, limit)}) // files of /proc have no size
	if err != nil && !errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("cannot read %s: %w", rel, plain(err))
	}
	return body, err
}

func tooLarge(rel string, limit int64) error {
	return fmt.Errorf("cannot read %s: %w: it has more than %d bytes, the limit is max_bytes", rel, ErrTooLarge, limit)
}

// plain returns an error without the path, which the caller adds.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
