package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// The kinds of sources.
const (
	Git  = "git"
	HTTP = "http"
	OCI  = "oci"
)

// Source says where content is. It contains no secrets.
type Source struct {
	// Kind is Git, HTTP or OCI.
	Kind string
	// URL is the address: of a Git repository, with the scheme https, http or ssh; of a
	// file, with the scheme https or http; or of an OCI repository, as
	// registry.example/acme/http without a scheme.
	URL string
	// Revision is a branch, a tag or a commit of Git, or a tag or a digest of OCI. It is
	// empty for HTTP.
	Revision string
	// Path is a file or a folder in the content, with slashes. Empty is the whole
	// content.
	Path string
	// Request is the hash of the method and the body of an HTTP request that is not a
	// plain GET; see RequestHash. It is empty otherwise.
	Request string
}

// RequestHash returns Source.Request for a method and a body.
func RequestHash(method, body string) string {
	if method == http.MethodGet && body == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(method + "\n" + body))
	return hex.EncodeToString(sum[:8])
}

// String returns the source in the form of weir.lock, policies and the command
// line, which Parse parses:
//
//	git+https://host/repo.git//path?ref=v1
//	git+ssh://git@host/repo.git?ref=main
//	https://host/pkg.tar.gz//path
//	oci://registry.example/acme/http:1.2.0//path
//	oci://registry.example/acme/http@sha256:…
//
// A request that is not a plain GET ends in #request=HASH.
func (s Source) String() string {
	sub := ""
	if s.Path != "" {
		sub = "//" + s.Path
	}
	switch s.Kind {
	case Git:
		return "git+" + s.URL + sub + "?ref=" + escapeRef(s.Revision)
	case OCI:
		sep := ":"
		if isDigest(s.Revision) {
			sep = "@"
		}
		return "oci://" + s.URL + sep + s.Revision + sub
	}
	addr, query, found := strings.Cut(s.URL, "?")
	text := addr + sub
	if found {
		text += "?" + query
	}
	if s.Request != "" {
		text += "#request=" + s.Request
	}
	return text
}

func escapeRef(ref string) string { return strings.ReplaceAll(url.QueryEscape(ref), "%2F", "/") }

// Validate returns the first error in the source.
func (s Source) Validate() error {
	if s.Path != "" && (s.Path != path.Clean(s.Path) || strings.HasPrefix(s.Path, "/") || s.Path == ".." || strings.HasPrefix(s.Path, "../") || strings.ContainsAny(s.Path, "?#\\") || strings.ContainsFunc(s.Path, unicode.IsControl)) {
		return fmt.Errorf("path is %q, must be a clean relative path with slashes, without \\, ? and #", s.Path)
	}
	switch s.Kind {
	case Git:
		return s.validGit()
	case HTTP:
		u, err := address(s.URL, "http", "https")
		if err != nil {
			return err
		}
		if u.User != nil {
			return errors.New("url contains a user name or a password: use the block basic_auth, because the URL is written to weir.lock")
		}
		if strings.Contains(u.EscapedPath(), "//") {
			return errors.New("url contains // in its path, which separates a path in the content from the address: use the attribute path")
		}
		return nil
	case OCI:
		return s.validOCI()
	}
	return fmt.Errorf("kind is %q, must be git, http or oci", s.Kind)
}

// address parses a URL that has a host and one of the schemes.
func address(text string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, which may contain a password
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse the URL: %w", err)
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme && u.Host != "" && u.Fragment == "" {
			return u, nil
		}
	}
	return nil, fmt.Errorf("the URL must begin with %s:// and a host, and have no fragment", strings.Join(schemes, ":// or "))
}

// gitRef matches names of branches and tags, and commits. It excludes refspecs and
// expressions such as HEAD~1.
var gitRef = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+=@/-]*$`)

func (s Source) validGit() error {
	u, err := address(s.URL, "https", "http", "ssh")
	if err != nil {
		return err
	}
	switch _, password := u.User.Password(); {
	case u.Scheme != "ssh" && u.User != nil, password:
		return errors.New("repository contains a user name or a password: use the block basic_auth, because the URL is written to weir.lock")
	case u.RawQuery != "" || strings.Contains(u.EscapedPath(), "//") || strings.Trim(u.Path, "/") == "":
		return errors.New("repository must have a path, without // and without a query")
	case !gitRef.MatchString(s.Revision) || strings.Contains(s.Revision, "..") || strings.Contains(s.Revision, "@{") || len(s.Revision) > 250:
		return fmt.Errorf("revision is %q, must be a branch, a tag or a commit", s.Revision)
	}
	return nil
}

var (
	ociRepository = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
	ociTag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digest        = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

func isDigest(revision string) bool { return strings.HasPrefix(revision, "sha256:") }

func (s Source) validOCI() error {
	switch {
	case !ociRepository.MatchString(s.URL):
		return fmt.Errorf("repository is %q, must be a registry and a name in lower case, such as registry.example/acme/http", s.URL)
	case isDigest(s.Revision) && !digest.MatchString(s.Revision):
		return fmt.Errorf("the digest %q must be sha256: and 64 hexadecimal digits", s.Revision)
	case !isDigest(s.Revision) && !ociTag.MatchString(s.Revision):
		return fmt.Errorf("the tag %q must consist of letters, digits, _, . and -", s.Revision)
	}
	return nil
}

// Parse parses the form of String. In addition, the revision may be missing: it is
// "main" for Git and "latest" for OCI. The source is valid.
func Parse(text string) (Source, error) {
	s, err := parse(text)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return Source{}, fmt.Errorf("cannot use the source: %w", err)
	}
	return s, nil
}

func parse(text string) (s Source, err error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return s, errors.New("it must begin with git+https://, git+ssh://, https:// or oci://")
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	addr, sub, _ := strings.Cut(rest, "//")
	s.Path = sub
	switch {
	case scheme == "oci":
		s.Kind, s.Revision = OCI, "latest"
		if name, d, ok := strings.Cut(addr, "@"); ok {
			addr, s.Revision = name, d
		} else if i := strings.LastIndex(addr, ":"); i > strings.LastIndex(addr, "/") {
			addr, s.Revision = addr[:i], addr[i+1:]
		}
		s.URL = addr
		if hasQuery || fragment != "" {
			return s, errors.New("an oci:// source has neither ? nor #")
		}
	case strings.HasPrefix(scheme, "git+"):
		s.Kind, s.Revision = Git, "main"
		s.URL = strings.TrimPrefix(scheme, "git+") + "://" + addr
		values, err := url.ParseQuery(query)
		if err != nil || fragment != "" {
			return s, errors.New("a git source has only ?ref=REVISION after its path")
		}
		for key, v := range values {
			if key != "ref" || len(v) != 1 {
				return s, errors.New("a git source has only ?ref=REVISION after its path")
			}
			s.Revision = v[0]
		}
	case scheme == "http" || scheme == "https":
		s.Kind = HTTP
		s.URL = scheme + "://" + addr
		if hasQuery {
			s.URL += "?" + query
		}
		if fragment != "" {
			if s.Request, ok = strings.CutPrefix(fragment, "request="); !ok {
				return s, errors.New("the URL must have no fragment")
			}
		}
	default:
		return s, fmt.Errorf("weir does not know the scheme %s://; it must be git+https://, git+ssh://, https:// or oci://", scheme)
	}
	return s, nil
}

// Host returns the host of the source, with the port if it has one.
func (s Source) Host() string {
	if s.Kind == OCI {
		host, _, _ := strings.Cut(s.URL, "/")
		return host
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Host
}
