// Package git fetches folders of Git repositories over HTTP and SSH.
//
// It uses the parts of go-git that encode the protocol and decode packs, without its
// transports and repositories: these open connections that no context ends, and they
// would double the size. A fetch asks for one commit without its history. Objects
// are identified by their hashes, so that a server cannot replace them.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// Fetcher is the remote.Fetcher of Git repositories.
type Fetcher struct{}

var _ remote.Fetcher = Fetcher{}

// Limits of what a server sends.
const (
	maxRefs     = 32 << 20  // bytes of the list of references
	maxPack     = 128 << 20 // bytes of a pack
	maxUnpacked = 512 << 20 // bytes of all objects in a pack
	maxTags     = 100_000
)

// session is a connection to a repository, for one request.
type session interface {
	// refs returns the response with the references.
	refs(ctx context.Context) (io.Reader, error)
	// upload sends a request for a pack and returns the response.
	upload(ctx context.Context, request []byte) (io.ReadCloser, error)
	io.Closer
}

func dial(ctx context.Context, s remote.Source, a remote.Access) (session, error) {
	if strings.HasPrefix(s.URL, "ssh://") {
		return dialSSH(ctx, s.URL, a)
	}
	return dialHTTP(s.URL, a)
}

// Versions lists the tags of the repository.
func (Fetcher) Versions(ctx context.Context, s remote.Source, a remote.Access) ([]string, error) {
	conn, err := dial(ctx, s, a)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	adv, err := references(ctx, conn)
	if err != nil {
		return nil, err
	}
	var tags []string
	for name := range adv.References {
		if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
			tags = append(tags, tag)
		}
	}
	if len(tags) > maxTags {
		return nil, fmt.Errorf("the repository has more than %d tags", maxTags)
	}
	return tags, nil
}

// Fetch adds the files of a folder at a revision, and returns the commit.
func (Fetcher) Fetch(ctx context.Context, s remote.Source, a remote.Access, files *remote.Files) (string, error) {
	conn, err := dial(ctx, s, a)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	adv, err := references(ctx, conn)
	if err != nil {
		return "", err
	}
	commit, request, err := want(adv, s.Revision)
	if err != nil {
		return "", err
	}
	objects, err := pack(ctx, conn, request)
	if err != nil {
		return "", err
	}
	t := tree{objects, files}
	commit, root, err := t.commit(commit)
	if err != nil {
		return "", err
	}
	return commit.String(), t.add(root, s.Path)
}

func references(ctx context.Context, conn session) (*packp.AdvRefs, error) {
	r, err := conn.refs(ctx)
	if err != nil {
		return nil, err
	}
	adv := packp.NewAdvRefs()
	err = adv.Decode(io.LimitReader(r, maxRefs))
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		return nil, errors.New("the repository is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the references of the repository: %w", err)
	}
	return adv, nil
}

// want returns the commit of a revision, or a tag that points to it, and the request
// for it.
func want(adv *packp.AdvRefs, revision string) (plumbing.Hash, *packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequest()
	for _, name := range []capability.Capability{capability.OFSDelta, capability.Shallow, capability.NoProgress} {
		if adv.Capabilities.Supports(name) {
			if err := req.Capabilities.Set(name); err != nil {
				return plumbing.ZeroHash, nil, err
			}
		}
	}
	if adv.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
	}
	for _, name := range []string{revision, "refs/tags/" + revision, "refs/heads/" + revision} {
		if h, ok := adv.References[name]; ok && strings.HasPrefix(name, "refs/") {
			req.Wants = []plumbing.Hash{h}
			return h, req, nil
		}
	}
	if !plumbing.IsHash(revision) {
		return plumbing.ZeroHash, nil, fmt.Errorf("the repository has no branch or tag %q; a commit is written with all its 40 digits", revision)
	}
	h := plumbing.NewHash(revision)
	req.Wants = []plumbing.Hash{h}
	if adv.Capabilities.Supports(capability.AllowReachableSHA1InWant) || adv.Capabilities.Supports("allow-any-sha1-in-want") {
		return h, req, nil
	}
	tips := map[plumbing.Hash]bool{}
	for name, tip := range adv.References {
		if tip == h {
			return h, req, nil
		}
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			tips[tip] = true
		}
	}
	// The server serves only what it advertises: get the history.
	req.Wants, req.Depth = nil, packp.DepthCommits(0)
	for tip := range tips {
		req.Wants = append(req.Wants, tip)
	}
	slices.SortFunc(req.Wants, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return h, req, nil
}

// pack gets a pack and returns its objects.
func pack(ctx context.Context, conn session, req *packp.UploadPackRequest) (*memory.Storage, error) {
	var b bytes.Buffer
	if err := req.UploadRequest.Encode(&b); err != nil {
		return nil, fmt.Errorf("cannot write the request: %w", err)
	}
	b.WriteString("0009done\n")
	body, err := conn.upload(ctx, b.Bytes())
	if err != nil {
		return nil, err
	}
	defer body.Close()
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(body); err != nil {
		return nil, fmt.Errorf("cannot read the answer: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(resp, maxPack+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the answer: %w", err)
	}
	if len(data) > maxPack {
		return nil, fmt.Errorf("the commit has more than %d MiB: use a smaller repository", maxPack>>20)
	}
	if err := checkSizes(data); err != nil {
		return nil, err
	}
	objects := memory.NewStorage()
	if err := packfile.UpdateObjectStorage(objects, bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("cannot unpack the answer: %w", err)
	}
	return objects, nil
}

// checkSizes returns an error if the objects of a pack are too large. The parser
// unpacks them in memory, and a pack of a few kilobytes can become gigabytes.
func checkSizes(data []byte) error {
	s := packfile.NewScanner(bytes.NewReader(data))
	_, n, err := s.Header()
	if err != nil {
		return fmt.Errorf("cannot unpack the answer: %w", err)
	}
	left := int64(maxUnpacked)
	take := func(size uint64) error {
		if size > uint64(left) {
			return fmt.Errorf("the objects of the commit have more than %d MiB: use a smaller repository", maxUnpacked>>20)
		}
		left -= int64(size)
		return nil
	}
	for range n {
		h, err := s.NextObjectHeader()
		if err != nil {
			return fmt.Errorf("cannot unpack the answer: %w", err)
		}
		if h.Length < 0 {
			return errors.New("cannot unpack the answer: an object has a negative size")
		}
		if err := take(uint64(h.Length)); err != nil {
			return err
		}
		var start prefix
		if _, _, err := s.NextObject(&start); err != nil {
			return fmt.Errorf("cannot unpack the answer: %w", err)
		}
		if h.Type == plumbing.OFSDeltaObject || h.Type == plumbing.REFDeltaObject {
			if err := take(start.target()); err != nil {
				return err
			}
		}
	}
	return nil
}

// prefix keeps the first bytes that are written to it.
type prefix struct {
	b [20]byte
	n int
}

// Write never fails.
func (p *prefix) Write(b []byte) (int, error) {
	p.n += copy(p.b[p.n:], b)
	return len(b), nil
}

// target returns the size of the object that a delta makes: the second of two
// numbers at its start, in groups of 7 bits.
func (p *prefix) target() (size uint64) {
	b := p.b[:p.n]
	for range 2 {
		size = 0
		for shift := 0; len(b) > 0; shift += 7 {
			c := b[0]
			size |= uint64(c&0x7f) << shift
			if b = b[1:]; c&0x80 == 0 {
				break
			}
		}
	}
	return size
}

// tree reads the objects of a commit.
type tree struct {
	objects *memory.Storage
	files   *remote.Files
}

func (t tree) read(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o, err := t.objects.EncodedObject(kind, h)
	if err != nil {
		return nil, fmt.Errorf("the repository lacks the %s %s: %w", kind, h, err)
	}
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// commit returns a commit, to which h may be a tag, and its tree.
func (t tree) commit(h plumbing.Hash) (commit, root plumbing.Hash, err error) {
	for range maxDepth {
		o, err := t.objects.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return h, h, fmt.Errorf("the repository lacks the commit %s: %w", h, err)
		}
		b, err := t.read(o.Type(), h)
		if err != nil {
			return h, h, err
		}
		line, _, _ := strings.Cut(string(b), "\n")
		kind, id, _ := strings.Cut(line, " ")
		switch {
		case o.Type() == plumbing.CommitObject && kind == "tree" && plumbing.IsHash(id):
			return h, plumbing.NewHash(id), nil
		case o.Type() == plumbing.TagObject && kind == "object" && plumbing.IsHash(id):
			h = plumbing.NewHash(id)
		default:
			return h, h, fmt.Errorf("the revision is a %s, must be a commit", o.Type())
		}
	}
	return h, h, errors.New("the revision is a tag of a tag of a tag, without an end")
}

// maxDepth is the maximum nesting of folders and tags.
const maxDepth = 32

// entry is an entry of a folder.
type entry struct {
	mode, name string
	hash       plumbing.Hash
}

// The modes of entries, see https://git-scm.com/docs/git-fast-import.
const (
	folder     = "40000"
	file       = "100644"
	executable = "100755"
	link       = "120000"
	submodule  = "160000"
)

// list returns the entries of a folder. Its format is a mode, a space, a name, a
// zero byte and 20 bytes of the hash, for each entry.
func (t tree) list(h plumbing.Hash) (entries []entry, err error) {
	b, err := t.read(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		head, rest, ok := bytes.Cut(b, []byte{0})
		mode, name, named := strings.Cut(string(head), " ")
		if !ok || !named || len(rest) < 20 || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("the folder %s of the repository is damaged", h)
		}
		e := entry{mode: mode, name: name}
		copy(e.hash[:], rest)
		entries = append(entries, e)
		b = rest[20:]
	}
	return entries, nil
}

// add adds the file or the folder at a path.
func (t tree) add(root plumbing.Hash, sub string) error {
	at := entry{mode: folder, hash: root}
	if sub != "" {
		for i, name := range strings.Split(sub, "/") {
			if at.mode != folder || i == maxDepth {
				return t.missing(sub)
			}
			entries, err := t.list(at.hash)
			if err != nil {
				return err
			}
			n := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
			if n < 0 {
				return t.missing(sub)
			}
			at = entries[n]
		}
	}
	if at.mode == folder {
		return t.walk(at.hash, "", 0)
	}
	return t.addFile(at, path.Base(sub))
}

func (t tree) missing(sub string) error {
	return fmt.Errorf("the repository has no file or folder %s at this revision", sub)
}

func (t tree) walk(h plumbing.Hash, dir string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("folders are nested deeper than %d", maxDepth)
	}
	entries, err := t.list(h)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.name)
		switch {
		case name != dir+"/"+e.name && name != e.name: // e.name is . or ..
			return fmt.Errorf("cannot use %q in a package: the path leads out of it", dir+"/"+e.name)
		case !pkg.Belongs(name) && name != pkg.SumsName:
		case e.mode == folder:
			err = t.walk(e.hash, name, depth+1)
		default:
			err = t.addFile(e, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t tree) addFile(e entry, name string) error {
	switch e.mode {
	case file, executable, "100664": // the last is of old repositories
		b, err := t.read(plumbing.BlobObject, e.hash)
		if err != nil {
			return err
		}
		return t.files.Add(name, bytes.NewReader(b))
	case link:
		return fmt.Errorf("%q is a link, and content consists of regular files", name)
	case submodule:
		return fmt.Errorf("%q is a submodule, which weir does not fetch: import its repository instead", name)
	}
	return fmt.Errorf("%q has the unknown mode %s", name, e.mode)
}
