package http

import (
	"crypto/sha256"
	"crypto/subtle"
	nethttp "net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// auth contains the login over TCP, and the paths that require it.
type auth struct {
	user, password [sha256.Size]byte
	paths          []string
	matching       bool // paths require the login; otherwise, they are exempt from it
}

// newAuth returns nil if no login is required.
func newAuth(a *AuthArguments) *auth {
	if a == nil || a.Basic == nil {
		return nil
	}
	// Hashes hide even the lengths from timing attacks.
	out := &auth{user: sha256.Sum256([]byte(a.Basic.Username)), password: sha256.Sum256([]byte(a.Basic.Password))}
	if a.Filter != nil {
		out.paths, out.matching = a.Filter.Paths, a.Filter.AuthenticateMatchingPaths
	}
	return out
}

// needsPassword reports whether a path needs a password.
func (a *auth) needsPassword(path string) bool {
	return a != nil && a.matching == slices.ContainsFunc(a.paths, func(p string) bool { return strings.HasPrefix(path, p) })
}

// authenticate reports whether a request has the name and the password.
func (a *auth) authenticate(r *nethttp.Request) bool {
	if a == nil {
		return false
	}
	user, password, ok := r.BasicAuth()
	u, p := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))
	same := subtle.ConstantTimeCompare(u[:], a.user[:]) & subtle.ConstantTimeCompare(p[:], a.password[:])
	return ok && same == 1
}

// Limits of failed logins from one address, or from one /64 network of IPv6: a
// burst, and then one per interval.
const (
	maxFailures     = 20
	failureInterval = 6 * time.Second
	maxAddresses    = 1024 // whose failures are recorded
)

// connection is the state of a connection over TCP.
type connection struct {
	made *posture    // the posture when it was accepted
	in   atomic.Bool // a login on it succeeded
}

type connectionKey struct{}

func connectionOf(r *nethttp.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// failures slow down attackers who guess the password.
type failures struct {
	clock   clock.Clock
	limited func(limit string)

	mu    sync.Mutex
	until map[netip.Addr]time.Time // when the failures of an address expire
}

// countAttempt counts an attempt before its result is known, so that concurrent
// attempts count as well. It returns false if there have been too many. A
// connection on which a login succeeded is exempt, so that other clients with
// the same address cannot lock it out.
func (f *failures) countAttempt(r *nethttp.Request) bool {
	if c := connectionOf(r); c != nil && c.in.Load() {
		return true
	}
	now, addr := f.clock.Now(), addressOf(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	until := f.until[addr]
	if until.Before(now) {
		until = now
	}
	if until.Sub(now) > (maxFailures-1)*failureInterval {
		f.limited("failed_logins")
		return false
	}
	if _, ok := f.until[addr]; !ok {
		f.makeRoom(now)
	}
	f.until[addr] = until.Add(failureInterval)
	return true
}

// giveBack removes a successful attempt from the count.
func (f *failures) giveBack(r *nethttp.Request) {
	if c := connectionOf(r); c != nil && c.in.Swap(true) {
		return // take did not count it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	addr := addressOf(r)
	if until, ok := f.until[addr]; ok {
		f.until[addr] = until.Add(-failureInterval)
	}
}

// makeRoom removes an address if there are too many. f.mu is held.
func (f *failures) makeRoom(now time.Time) {
	if len(f.until) < maxAddresses {
		return
	}
	var first netip.Addr
	for addr, until := range f.until {
		if !now.Before(until) {
			delete(f.until, addr)
		} else if !first.IsValid() || until.Before(f.until[first]) {
			first = addr
		}
	}
	if len(f.until) >= maxAddresses {
		delete(f.until, first)
		f.limited("failed_login_addresses")
	}
}

func addressOf(r *nethttp.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := from.Addr().Unmap()
	if p, err := addr.Prefix(64); err == nil && addr.Is6() {
		return p.Addr()
	}
	return addr
}
