package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg"
)

// Options are the options of New.
type Options struct {
	// Dir is the folder of the cache, which need not exist.
	Dir string
	// Fetchers are the fetchers by the kind of the sources.
	Fetchers map[string]Fetcher
	// UserAgent is sent to servers; it may be empty.
	UserAgent string
}

// Store fetches content and keeps it in a cache. All methods are safe for concurrent
// use, also by several processes with the same folder.
type Store struct{ o Options }

// New returns a store. It does not create the folder.
func New(o Options) *Store { return &Store{o} }

// Content is content in the cache.
type Content struct {
	// Dir is the folder with the files and with weir-package.sum. Do not change it.
	Dir string
	// Digest is the digest of Sums.
	Digest string
	// Revision is what the fetcher returned: the commit or the digest of a manifest. It
	// is empty if Open returned the content.
	Revision string
	Sums     pkg.Sums
}

// MismatchError says that content is not what its digest promises.
type MismatchError struct {
	What          string // a source or a folder
	Expected, Got string // digests
	Changes       []pkg.Change
}

// Error names the expected and the actual digest.
func (e *MismatchError) Error() string {
	msg := fmt.Sprintf("%s has changed: expected %s, got %s", e.What, e.Expected, e.Got)
	if len(e.Changes) > 0 {
		msg += ": " + describe(e.Changes)
	}
	return msg
}

// Unwrap returns ErrNotCached.
func (e *MismatchError) Unwrap() error { return ErrNotCached }

// Fetch gets a source over the network, puts its content into the cache and returns
// it. Whether its digest is the expected one is for the caller to decide.
func (s *Store) Fetch(ctx context.Context, src Source, a Access) (Content, error) {
	c, err := s.fetch(ctx, src, a)
	if err != nil {
		return Content{}, fmt.Errorf("cannot fetch %s: %w", src, err)
	}
	return c, nil
}

func (s *Store) fetch(ctx context.Context, src Source, a Access) (Content, error) {
	f, err := s.fetcher(src)
	if err != nil {
		return Content{}, err
	}
	ctx, cancel := a.limit(ctx)
	defer cancel()
	if a.UserAgent == "" {
		a.UserAgent = s.o.UserAgent
	}
	got := &Files{}
	revision, err := f.Fetch(ctx, src, a, got)
	if err != nil {
		return Content{}, causeOf(ctx, err)
	}
	sums, err := got.sums()
	if err != nil {
		return Content{}, err
	}
	c, err := s.put(got, sums)
	c.Revision = revision
	return c, err
}

func (s *Store) fetcher(src Source) (Fetcher, error) {
	if err := src.Validate(); err != nil {
		return nil, err
	}
	f := s.o.Fetchers[src.Kind]
	if f == nil {
		return nil, fmt.Errorf("this program cannot fetch from a %s source", src.Kind)
	}
	return f, nil
}

func (a Access) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	d := cmp.Or(a.Timeout, DefaultTimeout)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not finished within %s", d))
}

// causeOf returns why ctx ended, if it did, instead of an error of the network.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Versions lists the tags of the repository of a source.
func (s *Store) Versions(ctx context.Context, src Source, a Access) ([]string, error) {
	f, err := s.fetcher(src)
	if err == nil {
		var cancel context.CancelFunc
		ctx, cancel = a.limit(ctx)
		defer cancel()
		var tags []string
		if tags, err = f.Versions(ctx, src, a); err == nil {
			slices.Sort(tags)
			return slices.Compact(tags), nil
		}
		err = causeOf(ctx, err)
	}
	return nil, fmt.Errorf("cannot list the versions of %s: %w", src, err)
}

// dir returns the folder of a digest below a folder.
func dir(below, digest string) string {
	return filepath.Join(below, strings.Replace(digest, ":", string(filepath.Separator), 1))
}

// Open returns the content with a digest. It looks for it in the cache and then in
// the other folders, which have the layout of the cache, and it verifies all files.
// Content that differs from its digest is not used: the error is a *MismatchError that
// wraps ErrNotCached, and Fetch replaces it. If the content is not there, the error
// wraps ErrNotCached.
func (s *Store) Open(digest string, others ...string) (Content, error) {
	var errs []error
	for _, below := range append([]string{s.o.Dir}, others...) {
		c, err := open(below, digest)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return Content{}, errors.Join(errs...)
	}
	return Content{}, ErrNotCached
}

func open(below, want string) (Content, error) {
	if !digest.MatchString(want) {
		return Content{}, fmt.Errorf("the digest %q must be sha256: and 64 hexadecimal digits", want)
	}
	c := Content{Dir: dir(below, want), Digest: want}
	if _, err := files.Stat(c.Dir); err != nil {
		return Content{}, err
	}
	var err error
	if c.Sums, err = pkg.Compute(c.Dir); err != nil {
		return Content{}, fmt.Errorf("%w: %w", ErrNotCached, err)
	}
	if got := c.Sums.Digest(); got != want {
		e := &MismatchError{What: c.Dir, Expected: want, Got: got}
		if sums, err := pkg.ReadSums(c.Dir); err == nil && sums.Digest() == want {
			e.Changes = c.Sums.Changes(sums)
		}
		return Content{}, e
	}
	return c, nil
}

// put writes the files into the cache, unless they are there.
func (s *Store) put(f *Files, sums pkg.Sums) (Content, error) {
	want := sums.Digest()
	if c, err := open(s.o.Dir, want); err == nil {
		return c, sign(c.Dir, f.content[pkg.SignatureName])
	}
	if err := write(f, sums, s.o.Dir, dir(s.o.Dir, want)); err != nil {
		return Content{}, fmt.Errorf("cannot write into the cache: %w", err)
	}
	return open(s.o.Dir, want)
}

// sign replaces the signature of content in the cache by the one that was fetched with
// the same content, because it may have been signed later. Without one, it stays.
func sign(dir string, signature []byte) error {
	path := filepath.Join(dir, pkg.SignatureName)
	if have, err := files.Read(path, pkg.MaxFile); len(signature) == 0 || err == nil && string(have) == string(signature) {
		return nil
	}
	temp, err := os.CreateTemp(dir, ".new-")
	if err != nil {
		return fmt.Errorf("cannot write a signature into the cache: %w", err)
	}
	_, err = temp.Write(signature)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // report the first error
		return fmt.Errorf("cannot write a signature into the cache: %w", err)
	}
	return nil
}

// write writes the files into a new folder and gives it its name when it is
// complete. It replaces a folder that has other content.
func write(f *Files, sums pkg.Sums, cache, to string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	content := filepath.Join(temp, "content")
	for name, b := range f.content {
		path := filepath.Join(content, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(content, pkg.SumsName), []byte(sums.Text()), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := os.Rename(content, to)
		if err == nil {
			return nil
		}
		if _, err := open(cache, sums.Digest()); err == nil {
			return nil // another process was faster
		}
		if try == maxRenames {
			return err
		}
		// The folder was changed. A rename is atomic, removing it in place is not.
		_ = os.Rename(to, filepath.Join(temp, fmt.Sprintf("old-%d", try)))
	}
}

// maxRenames is how often a changed folder of the cache is replaced, which several
// processes may do at the same time.
const maxRenames = 5

// Copy copies content into another folder with the layout of the cache.
func (s *Store) Copy(c Content, to string) error {
	if _, err := open(to, c.Digest); err == nil {
		signature, err := files.Read(filepath.Join(c.Dir, pkg.SignatureName), pkg.MaxFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, sign(dir(to, c.Digest), signature))
	}
	f := &Files{content: map[string][]byte{}}
	for _, sum := range c.Sums {
		b, err := files.ReadIn(c.Dir, sum.Path, pkg.MaxFile)
		if err != nil {
			return err
		}
		f.content[sum.Path] = b
	}
	if b, err := files.ReadIn(c.Dir, pkg.SignatureName, pkg.MaxFile); err == nil {
		f.content[pkg.SignatureName] = b
	}
	got, err := f.sums()
	if err != nil {
		return err
	}
	if got.Digest() != c.Digest {
		return &MismatchError{What: c.Dir, Expected: c.Digest, Got: got.Digest()}
	}
	if err := write(f, got, to, dir(to, c.Digest)); err != nil {
		return fmt.Errorf("cannot copy %s: %w", c.Dir, err)
	}
	return nil
}
