package outbox

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/httpclient"
)

// CheckURL returns the error in the argument url of an endpoint for POST
// requests. The error does not contain the URL, which may contain a password.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("url: %w", errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New(`url must begin with "http://" or "https://"`)
	case u.Host == "":
		return errors.New("url has no host")
	}
	return nil
}

// CheckHeaders returns all errors in the argument headers, joined. reserved are
// names, in the form of http.CanonicalHeaderKey, that are not allowed in
// addition to headers that describe the request.
func CheckHeaders(headers map[string]string, reserved ...string) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch {
		case !ValidName(name):
			add("headers: %q is no name of a header", name)
		case Reserved(name, reserved...):
			add("headers: %q is set by weir and cannot be changed", name)
		case strings.ContainsFunc(headers[name], notInValue): // without the value, because it may be secret
			add("headers: the value of %q has a line feed or another control character: no request can have it", name)
		}
	}
	return errors.Join(errs...)
}

// Reserved reports whether a header describes the request, or is one of more.
func Reserved(name string, more ...string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Host", "Content-Encoding", "Content-Length", "Content-Type", "Connection", "Keep-Alive", "Transfer-Encoding":
		return true
	}
	return slices.Contains(more, name)
}

// ValidName reports whether name is a valid header name.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110#name-tokens
func ValidName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// notInValue reports whether r is invalid in the value of a header.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110#name-field-values
func notInValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// maxValue is the maximum length of a header's value, in bytes: servers refuse
// requests with more than a few kilobytes of headers.
const maxValue = 1024

// ValidValue reports whether v, which may be any data, can be sent unchanged as
// a header's value.
func ValidValue(v string) bool {
	return len(v) <= maxValue && textproto.TrimString(v) == v && !strings.ContainsFunc(v, notInValue)
}

// KeepPost returns a http.Client.CheckRedirect function. If follow is true, it
// follows redirects that keep the method and the body. It refuses all other
// redirects: the client would send a GET without the body, and the response may
// well be 200.
func KeepPost(follow bool) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if !follow || req.Method != http.MethodPost {
			return fmt.Errorf("server redirects to %s: make that the endpoint's url", ShownURL(req.URL.String()))
		}
		return httpclient.CheckRedirect(req, via)
	}
}
