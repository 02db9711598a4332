package http

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/control"
)

// access specifies who may use a route.
type access uint8

const (
	unclassified access = iota // a bug: every route must have another value
	public                     // anyone
	served                     // of components: anyone, but pages of other origins may only read
	limited                    // anyone who uses one of weir's host names; the response is reduced without credentials
	owned                      // callers with credentials
	socketOnly                 // the control socket
)

// via is the kind of a connection to the service.
type via uint8

const (
	overTCP via = iota
	inMemory
	overSocket
)

// caller is the sender of a request.
type caller struct {
	via   via
	owner bool   // has credentials: may read and change everything
	login bool   // has the name and the password of the block http
	base  string // the prefix of its URLs: the path of its session, or ""
	name  string // for the audit log
}

type callerKey struct{}

// callerOf returns the caller of a request that the service has admitted.
func callerOf(r *nethttp.Request) caller {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who
}

// refusal is the reason why a request is refused.
type refusal struct {
	status int
	reason string // label of the metric
	text   string
}

func (e *refusal) Error() string { return e.text }

const needsCredentials = "credentials are required: open the page with 'weir page', or send the token in the file " + control.TokenFile +
	" of the storage directory as 'Authorization: Bearer TOKEN'; a name and a password that the block http sets work as well"

var (
	errNoCredentials = &refusal{nethttp.StatusUnauthorized, "credentials", needsCredentials}
	errSessionEnded  = &refusal{nethttp.StatusUnauthorized, "session", "the session has ended: open the page with 'weir page'"}
	errLinkUsed      = &refusal{nethttp.StatusUnauthorized, "link", "the link has been used or has expired: print another with 'weir page'"}
	errPassword      = &refusal{nethttp.StatusUnauthorized, "credentials", "a name and a password are required"}
	errTooMany       = &refusal{nethttp.StatusTooManyRequests, "throttled", "too many failed logins from this address: try again later"}
	errPlaintextPath = &refusal{nethttp.StatusForbidden, "plaintext", "credentials are accepted over TLS or from the machine that weir runs on: add a block tls to the block http, or use the page there"}
	errOtherOrigin   = &refusal{nethttp.StatusForbidden, "origin", "not from another origin"}
	errSocketOnly    = &refusal{nethttp.StatusForbidden, "socket", "only over the control socket"}
	errMemory        = &refusal{nethttp.StatusForbidden, "memory", "components can reach only /metrics, health and the routes of components"}
)

// reasons are the labels of the metric that counts refusals.
var reasons = []string{"credentials", "session", "link", "throttled", "plaintext", "origin", "host", "socket", "memory"}

// admit returns the caller of a request over TCP, and the request without the
// path of its session.
func (s *Service) admit(p *posture, r *nethttp.Request) (*nethttp.Request, caller, error) {
	var who caller
	secure := r.TLS != nil || onMachine(r)
	if id, path, ok := sessionPath(r.URL.Path); ok {
		if !secure {
			return r, who, errPlaintextPath
		}
		if err := s.sessions.check(id, r); err != nil {
			return r, who, err
		}
		who.owner, who.base, who.name = true, sessionPrefix+id, sessionName(id)
		return rebase(r, who.base, path), who, nil
	}
	if s.hasToken(r) {
		who.owner, who.name = secure, "token"
	}
	a, asks := s.accessOf(r), p.auth.needsPassword(r.URL.Path) && r.URL.Path != linkPath
	if a == owned && !secure {
		return r, who, errPlaintextPath // before a browser asks for a password
	}
	if _, _, ok := r.BasicAuth(); ok && p.auth != nil {
		// Routes of components may have their own passwords.
		counts := asks || a != served
		if counts && !s.failures.countAttempt(r) {
			if asks || a == owned {
				return r, who, errTooMany
			}
			return r, who, nil // the same as without a login
		}
		if who.login = p.auth.authenticate(r); who.login {
			user, _, _ := r.BasicAuth()
			who.owner, who.name = secure, "login "+user
			if counts {
				s.failures.giveBack(r)
			}
		}
	}
	if asks && !who.owner && !who.login {
		return r, who, errPassword
	}
	return r, who, nil
}

// rebase returns a request with another path below base.
func rebase(r *nethttp.Request, base, path string) *nethttp.Request {
	next := r.WithContext(r.Context())
	u := *r.URL
	u.Path, u.RawPath = path, strings.TrimPrefix(r.URL.RawPath, base)
	next.URL = &u
	return next
}

// hasToken reports whether a request contains the token of the token file.
func (s *Service) hasToken(r *nethttp.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok && strings.EqualFold(scheme, "Bearer")
}

// check returns why a caller may not use a route.
func (s *Service) check(r *nethttp.Request, who caller, a access) error {
	if who.via == overSocket {
		return nil
	}
	read := r.Method == nethttp.MethodGet || r.Method == nethttp.MethodHead
	switch {
	case a == socketOnly:
		return errSocketOnly
	case a == public, a == served && (read || !fromPage(r)):
		return nil
	case who.via == inMemory:
		return errMemory
	case a == served:
		if err := s.checkHost(r, who); err != nil {
			return err
		}
		return sameOrigin(r)
	case a == limited && !who.owner:
		return s.checkHost(r, who)
	case who.owner:
		return ownOrigin(r)
	}
	return errNoCredentials
}

// onMachine reports whether a connection comes from the machine that weir runs
// on, so that it cannot be read on a network.
func onMachine(r *nethttp.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := from.Addr().Unmap()
	local, _ := r.Context().Value(nethttp.LocalAddrContextKey).(*net.TCPAddr)
	return addr.IsLoopback() || local != nil && local.AddrPort().Addr().Unmap() == addr
}

var crossOrigin = nethttp.NewCrossOriginProtection()

// fromPage reports whether a page in a browser makes the request. Browsers send
// such a header with every request that changes something; other programs do
// not.
func fromPage(r *nethttp.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// sameOrigin refuses requests by a page of another origin. A sandboxed page has
// the origin null.
func sameOrigin(r *nethttp.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host || crossOrigin.Check(r) != nil {
		return errOtherOrigin
	}
	return nil
}

// ownOrigin refuses requests with credentials by a page of another origin,
// including reads. Links to a page of weir are allowed anywhere.
func ownOrigin(r *nethttp.Request) error {
	if err := sameOrigin(r); err != nil {
		return err
	}
	h := r.Header
	switch site := h.Get("Sec-Fetch-Site"); {
	case site == "", site == "same-origin", site == "none":
		return nil
	case h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && r.Method == nethttp.MethodGet:
		return nil
	}
	return errOtherOrigin
}

// checkHost refuses a Host header that may be the name of a foreign page, which
// an attacker made resolve to this address. Addresses, localhost and the listen
// address are safe. So is a name in the certificate that the browser has
// verified, and with a password, because a browser sends it to no other page.
func (s *Service) checkHost(r *nethttp.Request, who caller) error {
	if s.knownHost(r.Host) || who.login {
		return nil
	}
	if p := s.posture.Load(); r.TLS != nil && p.serves() && len(p.tls.Certificates) > 0 {
		if leaf := p.tls.Certificates[0].Leaf; leaf != nil && leaf.VerifyHostname(hostname(r.Host)) == nil {
			return nil
		}
	}
	return &refusal{nethttp.StatusForbidden, "host", fmt.Sprintf("host %q is not one of weir's: use its IP address or localhost", r.Host)}
}

func (s *Service) knownHost(host string) bool {
	host = hostname(host)
	if host == "" {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		host == hostname(s.o.Listen) || slices.Contains(s.o.Hosts, host)
}

// hostname returns a host in lower case, without its port, brackets and final
// dot.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// refuse responds to a request that is refused, and counts it.
func (s *Service) refuse(w nethttp.ResponseWriter, r *nethttp.Request, err error) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		panic("BUG: a request is refused without a reason")
	}
	s.metrics.refused.WithLabelValues(e.reason).Inc()
	h := w.Header()
	protect(h)
	if e.status == nethttp.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="weir"`)
		// A browser asks for a password if there is one, except where only a link is
		// needed.
		if s.posture.Load().auth != nil && e.reason == "credentials" {
			h.Set("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
		}
	}
	if e == errTooMany {
		h.Set("Retry-After", "60")
	}
	if r.Method == nethttp.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		showRefused(w, e)
		return
	}
	nethttp.Error(w, "refused: "+e.text, e.status)
}

// protect sets the headers of all of weir's own responses.
func protect(h nethttp.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
}

// serve returns the handler for a kind of connection. net/http handles panics of what
// components serve: it logs them and closes the connection.
func (s *Service) serve(v via) nethttp.Handler {
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		who := caller{via: v, owner: v == overSocket}
		if v == overSocket {
			who.name = "socket"
		}
		ofComponent := w
		if acceptsJSON(r) {
			j := &jsonErrors{ResponseWriter: w}
			defer j.finish()
			w = j
		}
		if v == overTCP {
			// The deadline of an earlier request on the connection must not apply.
			_ = nethttp.NewResponseController(w).SetWriteDeadline(time.Time{}) // a recorder in a test has none
			p := s.posture.Load()
			if p.refuse(w, r) {
				return
			}
			var err error
			if r, who, err = s.admit(p, r); err != nil {
				s.refuse(w, r, err)
				return
			}
		}
		a := s.accessOf(r)
		var added nethttp.Handler
		if a == unclassified && who.base == "" {
			if added = s.added(r.URL.Path); added != nil {
				a = public // the code that added it restricts access
			}
		}
		if a == unclassified {
			protect(w.Header())
			s.routes.ServeHTTP(w, r) // 404, or 405
			return
		}
		err := s.check(r, who, a)
		if a == served && who.base != "" {
			err = errOtherOrigin // no component sees the cookie of a session
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if a == served || added != nil {
			s.hideCredentials(r, who)
			c := &contained{ResponseWriter: ofComponent}
			defer c.contain()
			w = c
		} else {
			protect(w.Header())
		}
		if added != nil {
			added.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
		s.routes.ServeHTTP(w, r)
	})
}
