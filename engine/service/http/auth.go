package http

import (
	"crypto/sha256"
	"crypto/subtle"
	nethttp "net/http"
	"slices"
	"strings"
)

// auth is who may come over TCP, and where that is asked.
type auth struct {
	user, password [sha256.Size]byte
	paths          []string
	matching       bool // paths are those to ask at, not those to leave out
}

// newAuth returns nil when nobody is asked.
func newAuth(a *AuthArguments) *auth {
	if a == nil || a.Basic == nil {
		return nil
	}
	// Hashes, so that not even lengths show in the time a comparison takes.
	out := &auth{user: sha256.Sum256([]byte(a.Basic.Username)), password: sha256.Sum256([]byte(a.Basic.Password))}
	if a.Filter != nil {
		out.paths, out.matching = a.Filter.Paths, a.Filter.AuthenticateMatchingPaths
	}
	return out
}

// asks reports whether a path needs a password.
func (a *auth) asks(path string) bool {
	return a != nil && a.matching == slices.ContainsFunc(a.paths, func(p string) bool { return strings.HasPrefix(path, p) })
}

// knows reports whether a request has the name and the password.
func (a *auth) knows(r *nethttp.Request) bool {
	if a == nil {
		return false
	}
	user, password, ok := r.BasicAuth()
	u, p := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))
	same := subtle.ConstantTimeCompare(u[:], a.user[:]) & subtle.ConstantTimeCompare(p[:], a.password[:])
	return ok && same == 1
}
