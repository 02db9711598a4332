package remote

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/weir-run/weir/engine/pkg"
)

// Files are the files of a source while it is fetched. They are limited like those
// of a package. The zero value is empty. It is not safe for concurrent use.
type Files struct {
	content map[string][]byte
	bytes   int64
}

// Add reads a file. The path has slashes. A file that does not belong to a package,
// such as one in .git, is left out. An error means that the source must be refused.
func (f *Files) Add(name string, r io.Reader) error {
	name = strings.TrimPrefix(name, "./")
	if err := pkg.CheckPath(name); err != nil {
		return err
	}
	if !pkg.Belongs(name) && name != pkg.SumsName && name != pkg.SignatureName {
		return nil
	}
	if _, ok := f.content[name]; ok {
		return fmt.Errorf("the file %s occurs twice", name)
	}
	if len(f.content) == pkg.MaxFiles {
		return fmt.Errorf("it has more than %d files", pkg.MaxFiles)
	}
	b, err := readAll(r, pkg.MaxFile)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	if f.bytes += int64(len(b)); f.bytes > pkg.MaxBytes {
		return fmt.Errorf("its files have more than %d MiB", pkg.MaxBytes>>20)
	}
	if f.content == nil {
		f.content = map[string][]byte{}
	}
	f.content[name] = b
	return nil
}

// Below reports whether a file at a path is in the part of a source with the path
// sub, and returns its path in this part. If sub is the file itself, this is its
// name.
func Below(sub, name string) (string, bool) {
	name = strings.TrimPrefix(name, "./")
	if sub == "" {
		return name, true
	}
	if name == sub {
		return path.Base(name), true
	}
	return strings.CutPrefix(name, sub+"/")
}

var errTooLarge = errors.New("it is too large")

// readAll reads at most limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: more than %d MiB", errTooLarge, limit>>20)
	}
	return b, err
}

// sums returns the checksums of the files, which must be those in weir-package.sum
// if there is this file.
func (f *Files) sums() (pkg.Sums, error) {
	files := map[string][]byte{}
	for name, b := range f.content {
		if pkg.Belongs(name) {
			files[name] = b
		}
	}
	if len(files) == 0 {
		return nil, errors.New("it has no files")
	}
	got := pkg.SumsOf(files)
	text, ok := f.content[pkg.SumsName]
	if !ok {
		return got, nil
	}
	want, err := pkg.ParseSums(pkg.SumsName, text)
	if err != nil {
		return nil, err
	}
	if changes := got.Changes(want); len(changes) > 0 {
		return nil, fmt.Errorf("its files do not match its %s: expected %s, got %s: %s", pkg.SumsName, want.Digest(), got.Digest(), describe(changes))
	}
	return got, nil
}

// maxChanges is how many changed files an error lists.
const maxChanges = 5

func describe(changes []pkg.Change) string {
	var list []string
	for i, c := range changes {
		if i == maxChanges {
			list = append(list, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		list = append(list, c.String())
	}
	return strings.Join(list, "; ")
}
