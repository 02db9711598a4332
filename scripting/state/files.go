package state

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/engine/files"
)

// file contains the methods for writing a state file; tests inject faults.
type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

func openOSFile(path string, flag int) (file, error) { return os.OpenFile(path, flag, 0o600) }

// fileExt is the extension of state files. Their name is their number.
const fileExt = ".state"

// dirName returns a directory name for a node: its ID, as far as it is valid in
// every file system, and a hash, because some file systems do not distinguish
// all IDs.
func dirName(node string) string {
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(node))
	if len(short) > 80 {
		short = short[:80]
	}
	sum := sha256.Sum256([]byte(node))
	return strings.Trim(short, ".") + "-" + hex.EncodeToString(sum[:6])
}

// Dir returns the directory of a node's state below the storage path.
func Dir(storage, node string) string { return filepath.Join(storage, "state", dirName(node)) }

// numbers returns the numbers of the state files in dir, highest first.
func numbers(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ns []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), fileExt)
		if n, err := strconv.ParseUint(name, 10, 64); ok && err == nil {
			ns = append(ns, n)
		}
	}
	slices.Sort(ns)
	slices.Reverse(ns)
	return ns, nil
}

func filePath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%08d%s", number, fileExt))
}

// found is the content of a directory of state files.
type found struct {
	im     *image // nil if there is no valid state
	number uint64 // of its file
	top    uint64 // the highest number
	// bad are files that are damaged or cannot be read, with the reasons.
	bad []badFile
}

type badFile struct {
	path string
	err  error
}

// readDir reads the state in dir: the finished file with the highest number. An
// error is a read error and may be temporary.
func readDir(dir string) (found, error) {
	ns, err := numbers(dir)
	if err != nil || len(ns) == 0 {
		return found{}, err
	}
	f := found{top: ns[0]}
	for _, n := range ns {
		path := filePath(dir, n)
		im, err := readFile(path)
		if no, ok := errors.AsType[*notOursError](err); ok {
			f.bad = append(f.bad, badFile{path, no})
			continue
		}
		if err != nil {
			return found{}, err
		}
		if im.damaged != nil {
			f.bad = append(f.bad, badFile{path, im.damaged})
		}
		if im.started {
			f.im, f.number = im, n
			return f, nil
		}
	}
	return f, nil
}

func readFile(path string) (*image, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return readImage(f, fi.Size())
}

// Nodes returns the nodes with persistent state in a storage directory, sorted.
// The error names directories that cannot be read; the nodes of the other
// directories are returned as well.
func Nodes(storage string) (nodes []string, err error) {
	root := filepath.Join(storage, "state")
	dirs, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the persistent state: %w", err)
	}
	var errs []error
	for _, d := range dirs {
		dir := filepath.Join(root, d.Name())
		f, err := readDir(dir)
		if err == nil && f.im == nil && len(f.bad) > 0 {
			err = f.bad[0].err
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("cannot read the persistent state in %s: %w", dir, err))
		case f.im != nil:
			nodes = append(nodes, f.im.meta.Node)
		}
	}
	slices.Sort(nodes)
	return nodes, errors.Join(errs...)
}

// Read returns the persistent state of a node in a storage directory, if there
// is any. It changes nothing, so weir may be running; the result may contain a
// part of concurrent changes.
func Read(storage, node string) ([]*Collection, error) {
	f, err := readDir(Dir(storage, node))
	if err != nil {
		return nil, fmt.Errorf("cannot read the persistent state of %s: %w", node, err)
	}
	if f.im == nil {
		for _, b := range f.bad {
			return nil, fmt.Errorf("cannot read the persistent state of %s: %s: %w", node, b.path, b.err)
		}
		return nil, nil
	}
	return f.im.collections(), nil
}
