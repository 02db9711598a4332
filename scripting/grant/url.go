package grant

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// URL is a pattern of URLs: https://geo.internal/*,
// http://*.example.com:8080/api/*. Create it with ParseURL.
type URL struct {
	text   string
	scheme string
	host   string // lower case; an address without brackets
	any    bool   // "*": every host
	sub    bool   // "*.": every name below host
	port   string // "*" for all
	path   string // escaped, with stars
	plain  string // unescaped, with stars
}

// maxPattern is the maximum length of a pattern, in bytes.
const maxPattern = 2000

// ParseURL parses a pattern of URLs. It has a scheme, http or https; a host,
// whose first part may be a star that stands for one or more names, or which
// may be just a star; a port, which may be a star and defaults to that of the
// scheme; and a path in which a star stands for any text, including slashes.
// The query of a URL is ignored.
func ParseURL(text string) (URL, error) {
	u, err := parsePattern(text)
	if err != nil {
		return URL{}, fmt.Errorf("cannot use %q as a pattern of URLs: %w", text, err)
	}
	return u, nil
}

func parsePattern(text string) (u URL, err error) {
	if len(text) > maxPattern {
		return u, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return u, errors.New(`it must begin with http:// or https://`)
	}
	u = URL{text: text, scheme: scheme}
	if i := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r >= 0x7f }); i >= 0 {
		return u, errors.New("it has a space, a control character or one beyond ASCII: write those of a path as %20, and a name as the xn--… that resolves")
	}
	if strings.ContainsAny(rest, `?#\`) {
		return u, errors.New("it must end with the path: a query is not looked at, and there is no # and no \\")
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return u, fmt.Errorf("it has no path: write %s/* for all paths", text)
	}
	u.path = rest[slash:]
	if err := leadsElsewhere(u.path); err != nil {
		return u, fmt.Errorf("its path %w", err)
	}
	if u.plain, err = url.PathUnescape(u.path); err != nil {
		return u, fmt.Errorf("its path cannot be read: %w", err)
	}
	if strings.Count(u.plain, "*") != strings.Count(u.path, "*") {
		return u, errors.New("its path has %2A, which cannot be told from a star")
	}
	return u, u.authority(rest[:slash])
}

// authority parses host and port.
func (u *URL) authority(s string) error {
	if strings.Contains(s, "@") {
		return errors.New("it has a user: credentials do not belong into a pattern")
	}
	host, port, err := splitPort(s)
	if err != nil {
		return err
	}
	if u.port = port; port == "" {
		u.port = defaultPort(u.scheme)
	}
	switch {
	case host == "*":
		u.any = true
		return nil
	case strings.HasPrefix(host, "*."):
		u.sub, host = true, host[2:]
	}
	if strings.Contains(host, "*") {
		return errors.New("its host has a star that is not the first part: write *.example.com")
	}
	if u.host, err = normalHost(host); err != nil {
		return err
	}
	if _, err := netip.ParseAddr(u.host); err == nil && u.sub {
		return errors.New("its host is a star before an address")
	}
	return nil
}

// splitPort splits off the port, which may be "". The brackets of an IPv6
// address are removed.
func splitPort(s string) (host, port string, err error) {
	host = s
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", errors.New("its host has a [ without ]")
		}
		addr, err := netip.ParseAddr(s[1:end])
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "", fmt.Errorf("%q is no address of IPv6 (without a zone)", s[1:end])
		}
		host, port = addr.String(), s[end+1:]
		if port == "" {
			return host, "", nil
		}
		if port[0] != ':' {
			return "", "", errors.New("there is something between ] and the port")
		}
		port = port[1:]
	} else {
		var has bool
		if host, port, has = strings.Cut(s, ":"); !has {
			return host, "", nil
		}
	}
	if port == "*" {
		return host, port, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "", fmt.Errorf("its port %q is not between 1 and 65535", port)
	}
	return host, strconv.FormatUint(n, 10), nil
}

// normalHost returns a host in the form in which it is compared: in lower case,
// without a trailing dot.
func normalHost(host string) (string, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" {
		return "", errors.New("it has no host")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("its address has a zone")
		}
		return addr.String(), nil
	}
	for part := range strings.SplitSeq(host, ".") {
		if part == "" {
			return "", fmt.Errorf("its host %q has an empty part", host)
		}
	}
	for _, r := range host {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_", r)) {
			return "", fmt.Errorf("its host has %q", r)
		}
	}
	return host, nil
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// String returns the pattern as written.
func (p URL) String() string { return p.text }

// Named reports whether the pattern contains its host, as a name or an address,
// without a star. Such a grant is valid wherever the host is.
func (p URL) Named() bool { return !p.any && !p.sub }

// Host returns the host of the pattern, with an address without brackets. It is
// "" for every host, and example.com for *.example.com.
func (p URL) Host() string { return p.host }

// Match reports whether the pattern matches t.
func (p URL) Match(t Target) bool {
	return p.scheme == t.scheme && p.MatchHost(t.host, t.port) &&
		glob(p.path, t.escaped) && glob(p.plain, t.plain)
}

// MatchHost reports whether the pattern matches the host and port of a Target,
// ignoring scheme and path.
func (p URL) MatchHost(host, port string) bool {
	if p.port != "*" && p.port != port {
		return false
	}
	switch {
	case p.any:
		return true
	case p.sub:
		_, isAddr := netip.ParseAddr(host)
		return isAddr != nil && strings.HasSuffix(host, "."+p.host)
	}
	return p.host == host
}

// Covers reports whether the pattern matches everything that q matches. It may
// return false in complicated cases.
func (p URL) Covers(q URL) bool {
	host := p.any || !q.any && (p.host == q.host && p.sub == q.sub || p.sub && strings.HasSuffix(q.host, "."+p.host))
	return host && p.scheme == q.scheme && (p.port == "*" || p.port == q.port) && covers(p.path, q.path) && covers(p.plain, q.plain)
}

// Target is a URL in the form in which it is compared. Create it with
// ParseTarget.
type Target struct {
	scheme, host, port string
	escaped, plain     string // the path
}

// Host returns the host in lower case, with an address without brackets.
func (t Target) Host() string { return t.host }

// Port returns the port, or that of the scheme if the URL has none.
func (t Target) Port() string { return t.port }

// Origin returns scheme, host and port, which identify where a secret may be
// sent.
func (t Target) Origin() string { return t.scheme + "://" + t.host + ":" + t.port }

// Encrypted reports whether the scheme is https.
func (t Target) Encrypted() bool { return t.scheme == "https" }

// ParseTarget parses the URL of a request. It refuses a URL that a server may
// interpret differently than a pattern: with dots to resolve, however they are
// written, with a user, or with a host that is not a name.
func ParseTarget(u *url.URL) (t Target, err error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return t, fmt.Errorf("cannot request %q: it must begin with http:// or https://", Shown(u))
	case u.User != nil:
		return t, fmt.Errorf("cannot request %q: it has a user in it, give basic = { username =, password = } instead", Shown(u))
	case u.Opaque != "":
		return t, fmt.Errorf("cannot request %q: it has no //", Shown(u))
	}
	host, port, err := splitPort(u.Host)
	if err == nil && port == "*" {
		err = errors.New("its port is a star")
	}
	if err == nil {
		host, err = normalHost(host)
	}
	if err != nil {
		return t, fmt.Errorf("cannot request %q: %w", Shown(u), err)
	}
	if port == "" {
		port = defaultPort(u.Scheme)
	}
	t = Target{scheme: u.Scheme, host: host, port: port, escaped: u.EscapedPath(), plain: u.Path}
	if t.escaped == "" {
		t.escaped, t.plain = "/", "/"
	}
	if t.plain[0] != '/' {
		return t, fmt.Errorf("cannot request %q: its path does not begin with a slash", Shown(u))
	}
	if err := leadsElsewhere(t.escaped); err != nil {
		return t, fmt.Errorf("cannot request %q: its path %w, write the path that is meant", Shown(u), err)
	}
	return t, nil
}

// Shown returns a URL for messages: without user and query, which may be
// secret, and no longer than a line.
func Shown(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	s := short.String()
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:197], "") + "…"
	}
	return s
}
