package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// Owner describes the sender of a journal.
type Owner struct {
	Endpoint string // its name in the config; may be empty
	URL      string // the destination of the blocks
	Node     string // the node that owns the journal: prometheus.remote_write.default
	// Tenant contains everything else by which the receiver identifies the owner
	// of the samples, such as headers. It may be secret: only a digest is stored.
	Tenant string
}

// Key returns the name of the journal's directory. It is derived from the
// endpoint's name, or from its URL if it has no name. It does not depend on
// credentials in the URL.
func (o Owner) Key() string {
	if o.Endpoint == "" {
		u, err := url.Parse(o.URL)
		if err != nil {
			u = &url.URL{Opaque: o.URL}
		}
		u.User = nil
		return "url-" + digest(u.String())
	}
	safe := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, o.Endpoint)
	if safe == o.Endpoint && len(safe) <= 64 {
		return "name-" + safe
	}
	// Upper case is replaced too, because some file systems ignore case.
	return "name-" + safe[:min(len(safe), 40)] + "-" + digest(o.Endpoint)
}

// audience returns a digest of the destination and the tenant. Another node may
// adopt a journal only if the digest is the same.
func (o Owner) audience() string {
	raw := o.URL
	if u, err := url.Parse(raw); err == nil {
		u.User = nil
		raw = u.String()
	}
	return digest(raw + "\x00" + o.Tenant)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// PublicURL returns a URL without the parts that may be secret: credentials and
// the values of its query.
func PublicURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "invalid URL"
	}
	u.User = nil
	u.Fragment = ""
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.String()
}

// meta is the file meta.json.
type meta struct {
	Version  int    `json:"version"`
	Shards   int    `json:"lanes"`
	Endpoint string `json:"endpoint"`
	URL      string `json:"url"`
	Node     string `json:"node"`
	Audience string `json:"audience"`
	MaxAgeMs int64  `json:"max_age_ms"`
}

const (
	metaName    = "meta.json"
	metaVersion = 1
	lockName    = "lock"
)

func parseMeta(dir string) (m meta, err error) {
	b, err := files.Read(filepath.Join(dir, metaName), 1<<20)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return meta{}, err
	}
	if m.Version != metaVersion {
		return m, fmt.Errorf("%w %d", errUnknownVersion, m.Version)
	}
	if m.Shards < 0 || m.Shards > MaxShards {
		return meta{}, fmt.Errorf("it has %d shards", m.Shards)
	}
	return m, nil
}

// readMeta returns the zero meta for a new journal and for a journal whose meta
// file cannot be read. It sets a meta file of another version aside.
func (j *Journal) readMeta() (meta, error) {
	m, err := parseMeta(j.dir)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, fs.ErrNotExist):
		return meta{}, nil
	case errors.Is(err, errUnknownVersion):
		entries, rerr := os.ReadDir(j.dir)
		if rerr != nil {
			return meta{}, rerr
		}
		for _, e := range entries {
			if e.Name() == lockName || e.IsDir() {
				continue
			}
			if err := j.setAside(filepath.Join(j.dir, e.Name()), err); err != nil {
				return meta{}, err
			}
		}
		return meta{}, nil
	}
	j.o.Logger.Warn("cannot read the journal's meta file; it is created again", "path", filepath.Join(j.dir, metaName), "err", err)
	return meta{}, nil
}

// writeMeta may be called from any goroutine, but not concurrently.
func (j *Journal) writeMeta() error {
	j.mu.Lock()
	m := meta{
		Version:  metaVersion,
		Shards:   len(j.shards),
		Endpoint: j.o.Owner.Endpoint,
		URL:      PublicURL(j.o.Owner.URL),
		Node:     j.o.Owner.Node,
		Audience: j.o.Owner.audience(),
		MaxAgeMs: j.limits.MaxAge.Milliseconds(),
	}
	j.mu.Unlock()
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	path := filepath.Join(j.dir, metaName)
	if old, err := files.Read(path, 1<<20); err == nil && bytes.Equal(old, b) {
		return nil
	}
	return files.Replace(path, b, false)
}

// setAside renames a file of an unknown version so that it is kept but not
// used.
func (j *Journal) setAside(path string, why error) error {
	dir := filepath.Join(j.dir, "unknown")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	to := filepath.Join(dir, fmt.Sprintf("%s.%d", filepath.Base(path), time.Now().UnixNano()))
	if err := os.Rename(path, to); err != nil {
		return err
	}
	j.o.Logger.Warn("a file of the journal was written by another version of weir and is set aside", "path", path, "to", to, "err", why)
	return nil
}
