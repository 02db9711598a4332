package remote

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg"
)

// AddArchive adds the part sub of an archive, which is a tar, a tar.gz or a zip file.
// It reports whether b is an archive.
func (f *Files) AddArchive(b []byte, sub string) (bool, error) {
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return true, fmt.Errorf("cannot uncompress the archive: %w", err)
		}
		return true, f.addTar(z, sub)
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		return true, f.addZip(b, sub)
	case len(b) > 262 && string(b[257:262]) == "ustar":
		return true, f.addTar(bytes.NewReader(b), sub)
	}
	return false, nil
}

// maxEntries is the maximum number of entries of an archive, and maxUnpacked the
// maximum number of bytes in it, with those outside of the part that is used.
const (
	maxEntries  = 10 * pkg.MaxFiles
	maxUnpacked = 8 * pkg.MaxBytes
)

func (f *Files) addTar(r io.Reader, sub string) error {
	all := &limited{r: r, left: maxUnpacked}
	t := tar.NewReader(all)
	for n := 0; ; n++ {
		h, err := t.Next()
		if err == io.EOF {
			// The checksum of gzip is behind the last entry.
			if _, err := io.Copy(io.Discard, all); err != nil {
				return fmt.Errorf("cannot read the archive: %w", err)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the archive: %w", err)
		}
		if n == maxEntries {
			return fmt.Errorf("the archive has more than %d entries", maxEntries)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, ok := Below(sub, h.Name)
		mode := h.FileInfo().Mode()
		switch {
		case !ok || mode.IsDir():
		case h.Typeflag == tar.TypeLink:
			return linked(h.Name, "a link")
		case !mode.IsRegular():
			return linked(h.Name, files.Kind(mode.Type()))
		default:
			if err := f.Add(name, t); err != nil {
				return err
			}
		}
	}
}

func (f *Files) addZip(b []byte, sub string) error {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // paths are checked below
		return fmt.Errorf("cannot read the archive: %w", err)
	}
	if len(z.File) > maxEntries {
		return fmt.Errorf("the archive has more than %d entries", maxEntries)
	}
	for _, e := range z.File {
		name, ok := Below(sub, e.Name)
		switch mode := e.Mode(); {
		case !ok || mode.IsDir():
			continue
		case !mode.IsRegular():
			return linked(e.Name, files.Kind(mode.Type()))
		}
		r, err := e.Open()
		if err != nil {
			return fmt.Errorf("cannot read %q in the archive: %w", e.Name, err)
		}
		err = f.Add(name, r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// linked refuses a link or another special file.
func linked(name, kind string) error {
	return fmt.Errorf("%s is %s, and content consists of regular files", files.Name(name), kind)
}

// limited fails after a number of bytes.
type limited struct {
	r    io.Reader
	left int64
}

// Read reads from the reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: more than %d MiB", errTooLarge, maxUnpacked>>20)
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	return n, err
}
