package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// Remote is the source of import.git, import.http or import.oci.
type Remote struct {
	Source remote.Source
	Access remote.Access
	// Poll is the interval between two looks for other content; 0 is never.
	Poll time.Duration
}

// ImportHTTP contains the arguments of import.http.
type ImportHTTP struct {
	URL           string            `alloy:"url,attr"`
	Path          string            `alloy:"path,attr,optional"`
	PollFrequency time.Duration     `alloy:"poll_frequency,attr,optional"`
	PollTimeout   time.Duration     `alloy:"poll_timeout,attr,optional"`
	Method        string            `alloy:"method,attr,optional"`
	Headers       map[string]string `alloy:"headers,attr,optional"`
	Body          string            `alloy:"body,attr,optional"`
	Client        HTTPClient        `alloy:"client,block,optional"`
}

// HTTPClient is the content of the block client.
type HTTPClient struct {
	HTTP httpclient.Arguments `alloy:",squash"`
}

// SetToDefault sets Alloy's defaults.
func (c *HTTPClient) SetToDefault() { c.HTTP.SetToDefault() }

// Validate returns all errors in the block, joined.
func (c *HTTPClient) Validate() error { return c.HTTP.Validate() }

// SetToDefault sets Alloy's defaults.
func (a *ImportHTTP) SetToDefault() {
	*a = ImportHTTP{PollFrequency: time.Minute, PollTimeout: 10 * time.Second, Method: http.MethodGet}
	a.Client.SetToDefault()
}

func (a *ImportHTTP) source() remote.Source {
	return remote.Source{Kind: remote.HTTP, URL: a.URL, Path: a.Path, Request: remote.RequestHash(a.Method, a.Body)}
}

// Validate returns all errors in the arguments, joined.
func (a *ImportHTTP) Validate() error {
	errs := []error{a.source().Validate(), checkFrequency("poll_frequency", a.PollFrequency)}
	if a.PollTimeout <= 0 {
		errs = append(errs, fmt.Errorf("poll_timeout is %s, must be greater than 0", a.PollTimeout))
	}
	if _, err := http.NewRequest(a.Method, "http://localhost/", nil); err != nil || a.Method == "" {
		errs = append(errs, fmt.Errorf("method %q is no HTTP method", a.Method))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(a.Headers[name]) {
			errs = append(errs, fmt.Errorf("headers: %q is no header, or has a value that cannot be one", name))
		}
	}
	return errors.Join(errs...)
}

func checkFrequency(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is %s, must be greater than 0, or 0 to look for no other content", name, d)
	}
	return nil
}

// ImportGit contains the arguments of import.git.
type ImportGit struct {
	Repository    string          `alloy:"repository,attr"`
	Revision      string          `alloy:"revision,attr,optional"`
	Path          string          `alloy:"path,attr,optional"`
	PullFrequency time.Duration   `alloy:"pull_frequency,attr,optional"`
	BasicAuth     *RemotePassword `alloy:"basic_auth,block,optional"`
	SSHKey        *SSHKey         `alloy:"ssh_key,block,optional"`
}

// RemotePassword is a user name with its password.
type RemotePassword struct {
	Username string           `alloy:"username,attr"`
	Password component.Secret `alloy:"password,attr"`
}

// SSHKey is the content of the block ssh_key.
type SSHKey struct {
	Username   string           `alloy:"username,attr"`
	Key        component.Secret `alloy:"key,attr,optional"`
	KeyFile    string           `alloy:"key_file,attr,optional"`
	Passphrase component.Secret `alloy:"passphrase,attr,optional"`
	KnownHosts string           `alloy:"known_hosts,attr,optional"`
}

// SetToDefault sets Alloy's defaults.
func (a *ImportGit) SetToDefault() {
	*a = ImportGit{Revision: "main", PullFrequency: time.Minute}
}

// source returns the source. A repository may be written as git@host:path.
func (a *ImportGit) source() remote.Source {
	url := a.Repository
	if host, path, ok := strings.Cut(url, ":"); ok && !strings.Contains(host, "/") && !strings.HasPrefix(path, "//") {
		url = "ssh://" + host + "/" + strings.TrimPrefix(path, "/")
	}
	return remote.Source{Kind: remote.Git, URL: strings.TrimSuffix(url, "/"), Revision: a.Revision, Path: a.Path}
}

// Validate returns all errors in the arguments, joined.
func (a *ImportGit) Validate() error {
	s := a.source()
	errs := []error{s.Validate(), checkFrequency("pull_frequency", a.PullFrequency)}
	ssh := strings.HasPrefix(s.URL, "ssh://")
	switch key := a.SSHKey; {
	case ssh && a.BasicAuth != nil:
		errs = append(errs, errors.New("basic_auth is for repositories over https; a repository over SSH needs ssh_key"))
	case !ssh && key != nil:
		errs = append(errs, errors.New("ssh_key is for repositories over SSH; a repository over https needs basic_auth"))
	case ssh && (key == nil || key.Key == "" && key.KeyFile == ""):
		errs = append(errs, errors.New("a repository over SSH needs the block ssh_key, with key or key_file"))
	case ssh && key.Key != "" && key.KeyFile != "":
		errs = append(errs, errors.New("ssh_key: at most one of key and key_file may be set"))
	}
	return errors.Join(errs...)
}

func (a *ImportGit) access() (access remote.Access) {
	if b := a.BasicAuth; b != nil {
		access.Username, access.Password = b.Username, b.Password
	}
	if k := a.SSHKey; k != nil {
		access.SSH = &remote.SSH{Username: k.Username, Key: k.Key, KeyFile: k.KeyFile, Passphrase: k.Passphrase, KnownHosts: k.KnownHosts}
	}
	return access
}

// ImportOCI contains the arguments of import.oci.
type ImportOCI struct {
	Repository    string          `alloy:"repository,attr"`
	Tag           string          `alloy:"tag,attr,optional"`
	Digest        string          `alloy:"digest,attr,optional"`
	Path          string          `alloy:"path,attr,optional"`
	PollFrequency time.Duration   `alloy:"poll_frequency,attr,optional"`
	PlainHTTP     bool            `alloy:"plain_http,attr,optional"`
	BasicAuth     *RemotePassword `alloy:"basic_auth,block,optional"`
}

// SetToDefault sets the defaults.
func (a *ImportOCI) SetToDefault() { *a = ImportOCI{PollFrequency: time.Minute} }

func (a *ImportOCI) source() remote.Source {
	return remote.Source{Kind: remote.OCI, URL: a.Repository, Revision: cmp.Or(a.Digest, a.Tag), Path: a.Path}
}

// Validate returns all errors in the arguments, joined.
func (a *ImportOCI) Validate() error {
	errs := []error{checkFrequency("poll_frequency", a.PollFrequency)}
	switch {
	case (a.Tag == "") == (a.Digest == ""):
		errs = append(errs, errors.New("one of tag and digest must be set"))
	case a.Digest != "" && !strings.HasPrefix(a.Digest, "sha256:"):
		errs = append(errs, errors.New("digest must be sha256: and 64 hexadecimal digits"))
	default:
		errs = append(errs, a.source().Validate())
	}
	return errors.Join(errs...)
}

func (a *ImportOCI) access() remote.Access {
	access := remote.Access{PlainHTTP: a.PlainHTTP}
	if b := a.BasicAuth; b != nil {
		access.Username, access.Password = b.Username, b.Password
	}
	return access
}

// remote decodes the block of a remote import; it returns nil if there are errors.
func (b *Block) remote(s *Scope) (*Remote, Diagnostics) {
	r := &Remote{}
	var ds Diagnostics
	switch b.Name {
	case "import.git":
		a := &ImportGit{}
		if ds = b.decodeConstant(b.stmt, s, a); !ds.HasErrors() {
			r.Source, r.Access, r.Poll = a.source(), a.access(), a.PullFrequency
		}
	case "import.oci":
		a := &ImportOCI{}
		if ds = b.decodeConstant(b.stmt, s, a); !ds.HasErrors() {
			r.Source, r.Access, r.Poll = a.source(), a.access(), a.PollFrequency
		}
	default:
		a := &ImportHTTP{}
		if ds = b.decodeConstant(b.stmt, s, a); !ds.HasErrors() {
			r.Source, r.Poll = a.source(), a.PollFrequency
			r.Access = remote.Access{Method: a.Method, Headers: a.Headers, Body: a.Body, Client: &a.Client.HTTP, Timeout: a.PollTimeout}
		}
	}
	if ds.HasErrors() {
		return nil, ds
	}
	return r, ds
}
