package http

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	nethttp "net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/service"
)

// Limits of links to the web UI, and of the sessions that they start.
const (
	linkTime    = 10 * time.Minute
	maxLinks    = 16
	sessionTime = 12 * time.Hour
	maxSessions = 16
)

// linkPath is the path of links.
const linkPath = "/-/page"

// sessionPrefix is the prefix of the paths of sessions: /s/ID/node/x is /node/x
// in the session ID. Browsers send a cookie to every port of a host, including
// servers of other users of the machine. The path of the cookie is a secret of
// the session, so that a browser never sends it to them.
const sessionPrefix = "/s/"

const sessionCookie = "weir_session"

// sessions contains the links and the sessions that they started. They do not
// outlive the process.
type sessions struct {
	clock   clock.Clock
	limited func(limit string)

	mu    sync.Mutex
	links map[digest]time.Time // expiry by token
	open  map[digest]session   // by ID
}

// digest is the hash of a secret, so that all failing look-ups take the same
// time.
type digest = [sha256.Size]byte

func hash(secret string) digest { return sha256.Sum256([]byte(secret)) }

// session is the session of one browser.
type session struct {
	cookie digest
	until  time.Time
}

func newSessions(c clock.Clock, limited func(limit string)) *sessions {
	return &sessions{clock: c, limited: limited, links: map[digest]time.Time{}, open: map[digest]session{}}
}

// link returns the token of a new link.
func (s *sessions) link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := rand.Text()
	if makeRoom(s.links, maxLinks, s.clock.Now(), func(until time.Time) time.Time { return until }) {
		s.limited("page_links")
	}
	s.links[hash(token)] = s.clock.Now().Add(linkTime)
	return token
}

// start redeems a token. It can be redeemed once.
func (s *sessions) start(token string) (id, cookie string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	until, ok := s.links[hash(token)]
	delete(s.links, hash(token))
	if !ok || !now.Before(until) {
		return "", "", false
	}
	if makeRoom(s.open, maxSessions, now, func(x session) time.Time { return x.until }) {
		s.limited("page_sessions")
	}
	id, cookie = rand.Text(), rand.Text()
	s.open[hash(id)] = session{hash(cookie), now.Add(sessionTime)}
	return id, cookie, true
}

// makeRoom removes expired elements, and if the maximum is still reached, the
// one that would expire first. It reports whether it had to do this.
func makeRoom[T any](m map[digest]T, most int, now time.Time, until func(T) time.Time) (full bool) {
	var first digest
	for key, v := range m {
		if !now.Before(until(v)) {
			delete(m, key)
		} else if f, ok := m[first]; !ok || until(v).Before(until(f)) {
			first = key
		}
	}
	if len(m) < most {
		return false
	}
	delete(m, first)
	return true
}

// errContinue is for a link to a page of a session on a page of another site:
// the browser sends the cookie only with requests from weir's own page.
var errContinue = &refusal{nethttp.StatusUnauthorized, "session", "continue"}

// check returns why a request does not belong to a session.
func (s *sessions) check(id string, r *nethttp.Request) error {
	s.mu.Lock()
	x, ok := s.open[hash(id)]
	s.mu.Unlock()
	if !ok || !s.clock.Now().Before(x.until) {
		return errSessionEnded
	}
	for _, c := range r.CookiesNamed(sessionCookie) {
		if got := hash(c.Value); subtle.ConstantTimeCompare(got[:], x.cookie[:]) == 1 {
			return nil
		}
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return errContinue
	}
	return errSessionEnded
}

// sessionName is a session in the audit log. The ID is a secret.
func sessionName(id string) string {
	h := hash(id)
	return "session " + hex.EncodeToString(h[:4])
}

// sessionPath splits a path below sessionPrefix.
func sessionPath(path string) (id, rest string, ok bool) {
	path, ok = strings.CutPrefix(path, sessionPrefix)
	id, rest, slash := strings.Cut(path, "/")
	return id, "/" + rest, ok && slash
}

// PageURL returns a URL that opens the web UI in a browser without a login:
// once, within 10 minutes, and from the machine that weir runs on or over TLS.
// It is a secret. It is "" if the service does not listen.
func (s *Service) PageURL() string {
	if s.Address() == "" {
		return ""
	}
	return s.URL() + linkPath + "?" + url.Values{"token": {s.sessions.link()}}.Encode()
}

// newLink responds with a PageURL.
func (s *Service) newLink(_ service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	u := s.PageURL()
	if u == "" {
		nethttp.Error(w, "weir has no page: it was started without an address in --server.http.listen-addr", nethttp.StatusNotFound)
		return
	}
	fmt.Fprintln(w, u)
}

// openLink starts a session, and redirects the browser to a URL without the
// token.
func (s *Service) openLink(w nethttp.ResponseWriter, r *nethttp.Request) {
	if r.TLS == nil && !onMachine(r) {
		s.refuse(w, r, errPlaintextPath)
		return
	}
	if r.Method != nethttp.MethodGet { // HEAD, from a program that checks links
		return
	}
	id, cookie, ok := s.sessions.start(r.URL.Query().Get("token"))
	if !ok {
		s.refuse(w, r, errLinkUsed)
		return
	}
	base := sessionPrefix + id + "/"
	nethttp.SetCookie(w, &nethttp.Cookie{
		Name: sessionCookie, Value: cookie, Path: base, MaxAge: int(sessionTime / time.Second),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: nethttp.SameSiteStrictMode,
	})
	w.Header().Set("Location", base)
	w.WriteHeader(nethttp.StatusSeeOther)
}
