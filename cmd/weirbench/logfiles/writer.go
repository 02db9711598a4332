package logfiles

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options configure the files.
type Options struct {
	Dir   string // must exist; its files are app-00000.log and so on
	Files int
	JSON  bool
	Seed  uint64

	// RotateAt is the size from which a file is rotated before the next write; 0
	// means never. Rotation is the kind of rotation, and Keep the number of old
	// files to keep.
	RotateAt int64
	Rotation Rotation
	Keep     int
}

// Validate returns an error if o is invalid.
func (o Options) Validate() error {
	switch {
	case o.Files < 1 || o.Files > 99_999:
		return fmt.Errorf("cannot write %d files: 1 to 99999 have room in the numbers of lines", o.Files)
	case o.RotateAt < 0 || o.Keep < 0:
		return errors.New("cannot rotate at a negative size, or keep a negative number of files")
	case o.RotateAt > 0 && !o.Rotation.known():
		return fmt.Errorf("cannot rotate by %q: there are rename, copytruncate and recreate", o.Rotation)
	}
	return nil
}

// Rotation is a way of replacing a log file.
type Rotation string

// The ways in which logrotate and services replace files.
const (
	Rename       Rotation = "rename"       // app.log is renamed to app.log.1, and a new file is created
	CopyTruncate Rotation = "copytruncate" // app.log is copied to app.log.1 and truncated
	Recreate     Rotation = "recreate"     // app.log is removed, and a new file is created
)

func (r Rotation) known() bool { return r == Rename || r == CopyTruncate || r == Recreate }

// Writer writes files. Its methods are safe for concurrent use.
type Writer struct {
	o Options

	mu    sync.Mutex
	files []*file
	buf   []byte
}

type file struct {
	path string
	f    *os.File
	size int64
	*content
}

// New creates empty files.
func New(o Options) (_ *Writer, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	w := &Writer{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	for i := range o.Files {
		f := &file{path: filepath.Join(o.Dir, fmt.Sprintf("app-%05d.log", i)), content: newContent(i, o.JSON, o.Seed)}
		if err := f.create(); err != nil {
			return nil, err
		}
		w.files = append(w.files, f)
	}
	return w, nil
}

// Path returns the path of a file.
func (w *Writer) Path(file int) string { return w.files[file].path }

// Close closes the files.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.f.Close())
	}
	return errors.Join(errs...)
}

// chunk is the maximum number of lines per system call.
const chunk = 1000

// Write appends lines to a file and rotates it if it is large.
func (w *Writer) Write(file, lines int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[file]
	for lines > 0 {
		if w.o.RotateAt > 0 && f.size >= w.o.RotateAt {
			if err := w.rotate(f, w.o.Rotation, 0); err != nil {
				return err
			}
		}
		n := min(lines, chunk)
		if err := w.write(f, n); err != nil {
			return err
		}
		lines -= n
	}
	return nil
}

// WriteTorn appends lines to a file, the last one in two parts. It calls between
// after the first part.
func (w *Writer) WriteTorn(file, lines int, between func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[file]
	text := w.text(f, lines)
	cut := len(text) - len(text)/lines/2
	if err := f.write(text[:cut]); err != nil {
		return err
	}
	between()
	return f.write(text[cut:])
}

// Rotate replaces a file. Before the new one is created, late lines are still
// written to the old one, as by services that have not been notified yet; not
// with CopyTruncate.
func (w *Writer) Rotate(file int, how Rotation, late int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rotate(w.files[file], how, late)
}

// Detach renames a file to app.log.1, or removes it with Recreate, and creates no
// new file, like logrotate with nocreate. Lines are written to the old file until
// Reopen.
func (w *Writer) Detach(file int, how Rotation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if how == CopyTruncate {
		return fmt.Errorf("cannot detach by %q", how)
	}
	return w.unname(w.files[file], how)
}

// Reopen creates the new file after Detach.
func (w *Writer) Reopen(file int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[file].reopen()
}

func (w *Writer) rotate(f *file, how Rotation, late int) error {
	if err := w.unname(f, how); err != nil || how == CopyTruncate {
		return err
	}
	if late > 0 {
		if err := w.write(f, late); err != nil {
			return err
		}
	}
	return f.reopen()
}

// unname removes the content of a file from its path.
func (w *Writer) unname(f *file, how Rotation) error {
	switch how {
	case Rename:
		if err := w.shift(f); err != nil {
			return err
		}
		if err := os.Rename(f.path, f.path+".1"); err != nil {
			return fmt.Errorf("cannot rotate: %w", err)
		}
	case CopyTruncate:
		if err := w.shift(f); err != nil {
			return err
		}
		if err := copyTo(f.path, f.path+".1"); err != nil {
			return fmt.Errorf("cannot rotate: %w", err)
		}
		f.size = 0
		return f.f.Truncate(0)
	case Recreate:
		if err := os.Remove(f.path); err != nil {
			return fmt.Errorf("cannot rotate: %w", err)
		}
	default:
		return fmt.Errorf("cannot rotate by %q", how)
	}
	return nil
}

// shift renames old files so that app.log.1 is free.
func (w *Writer) shift(f *file) error {
	older := func(n int) string { return fmt.Sprintf("%s.%d", f.path, n) }
	keep := max(w.o.Keep, 1)
	if err := os.Remove(older(keep)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot rotate: %w", err)
	}
	for n := keep - 1; n > 0; n-- {
		if err := os.Rename(older(n), older(n+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot rotate: %w", err)
		}
	}
	return nil
}

func copyTo(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// write appends lines.
func (w *Writer) write(f *file, lines int) error { return f.write(w.text(f, lines)) }

// text returns lines, which are valid until the next call.
func (w *Writer) text(f *file, lines int) []byte {
	f.setTime(time.Now())
	w.buf = w.buf[:0]
	for range lines {
		w.buf = f.append(w.buf)
	}
	return w.buf
}

func (f *file) write(text []byte) error {
	n, err := f.f.Write(text)
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("cannot write lines: %w", err)
	}
	return nil
}

func (f *file) reopen() error {
	if err := f.f.Close(); err != nil {
		return err
	}
	return f.create()
}

func (f *file) create() (err error) {
	f.size = 0
	if f.f, err = os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o666); err != nil {
		return fmt.Errorf("cannot make a log file: %w", err)
	}
	return nil
}

// Stats are the numbers of written lines and bytes.
type Stats struct {
	Lines   int64          `json:"lines"`
	Written map[string]int `json:"written,omitempty"` // lines by sequence
}

// Stats returns what was written so far. If detail is true, it includes the lines
// by sequence.
func (w *Writer) Stats(detail bool) Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	var st Stats
	if detail {
		st.Written = map[string]int{}
	}
	for _, f := range w.files {
		st.Lines += int64(f.n)
		if !detail {
			continue
		}
		for level, n := range f.counts {
			st.Written[fmt.Sprintf("%05d%c", f.content.file, level)] = int(n)
		}
	}
	return st
}
