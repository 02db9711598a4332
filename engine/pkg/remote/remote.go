// Package remote fetches the content of packages, scripts and modules from Git
// repositories, HTTP servers and OCI registries, and keeps it in a cache.
//
//   - [Source] says where content is. [Source.String] is its key in weir.lock.
//   - A [Fetcher] gets the files of a source. Package remote has the one for HTTP;
//     those for Git and OCI are in packages of their own, because they import large
//     libraries.
//   - A [Store] puts the files into a folder that is named after their digest,
//     [pkg.Sums.Digest], and verifies the digest whenever it opens the folder.
//
// Content is data of strangers: the number and the size of files are limited, paths
// cannot leave the folder, links are refused, and a server cannot redirect to
// another host. The package does not decide whether a digest is trusted; weir.lock
// does.
package remote

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
)

// Access says how to get a source. The zero value is anonymous access.
type Access struct {
	// Username and Password authenticate requests to a Git repository over HTTP, or to an
	// OCI registry.
	Username string
	Password component.Secret
	// SSH authenticates to a Git repository over SSH; nil uses the SSH agent.
	SSH *SSH
	// PlainHTTP accesses an OCI registry without TLS.
	PlainHTTP bool
	// Method, Headers and Body make the request of HTTP; an empty method is GET.
	Method  string
	Headers map[string]string
	Body    string
	// Client are the settings of the HTTP client; nil means the defaults.
	Client *httpclient.Arguments
	// Timeout limits one fetch; 0 is DefaultTimeout.
	Timeout time.Duration
	// UserAgent is sent to servers; it may be empty.
	UserAgent string
}

// SSH is how a client of Git authenticates itself and the server.
type SSH struct {
	// Username is that of the URL unless it is set.
	Username string
	// Key is a private key in PEM format. Otherwise, KeyFile is a file with one.
	Key     component.Secret
	KeyFile string
	// Passphrase decrypts the key; it may be empty.
	Passphrase component.Secret
	// KnownHosts is a file with the keys of hosts, in OpenSSH's format. If it is empty,
	// the user's and the system's files are used.
	KnownHosts string
}

// DefaultTimeout is the time limit of one fetch.
const DefaultTimeout = 60 * time.Second

// A Fetcher gets the content of one kind of sources. Its methods can be called
// concurrently. They end soon after ctx does.
type Fetcher interface {
	// Fetch adds the files of a source to files, with paths relative to Source.Path, and
	// returns the exact revision: the commit, or the digest of a manifest. It is empty
	// if the kind has none. If Source.Path is a file, Fetch adds this file.
	Fetch(ctx context.Context, s Source, a Access, files *Files) (revision string, err error)
	// Versions lists the tags of the repository of a source, in no particular order. The
	// error wraps ErrNoVersions if the kind has none.
	Versions(ctx context.Context, s Source, a Access) ([]string, error)
}

// ErrNoVersions says that the versions of a source cannot be listed.
var ErrNoVersions = errors.New("a file has no versions that could be listed")

// ErrNotCached says that content is not in the cache. The content must be fetched.
var ErrNotCached = errors.New("the content is not in the cache")
