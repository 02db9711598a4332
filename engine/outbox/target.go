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

// CheckURL returns what is wrong with the argument url, to which something is
// posted, and does not say what it is: it may hold a password.
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

// CheckHeaders returns all that is wrong with the argument headers, joined.
// reserved are names, as http.CanonicalHeaderKey makes them, besides those that
// say what a request is.
func CheckHeaders(headers map[string]string, reserved ...string) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch {
		case !ValidName(name):
			add("headers: %q is no name of a header", name)
		case Reserved(name, reserved...):
			add("headers: %q is set by weir and cannot be changed", name)
		case strings.ContainsFunc(headers[name], notInValue): // no value here: it may be secret
			add("headers: the value of %q has a line feed or another control character: no request can have it", name)
		}
	}
	return errors.Join(errs...)
}

// Reserved reports whether a header says what a request is, or is one of more.
func Reserved(name string, more ...string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Host", "Content-Encoding", "Content-Length", "Content-Type", "Connection", "Keep-Alive", "Transfer-Encoding":
		return true
	}
	return slices.Contains(more, name)
}

// ValidName reports whether a header can have the name.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110#name-tokens
func ValidName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// notInValue is true for what no header's value has.
//
// Format: https://www.rfc-editor.org/rfc/rfc9110#name-field-values
func notInValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// maxValue is the longest value of a header, in bytes: servers refuse requests
// with more than some kilobytes of headers.
const maxValue = 1024

// ValidValue reports whether v, which may be any data, arrives as it is in a
// header.
func ValidValue(v string) bool {
	return len(v) <= maxValue && textproto.TrimString(v) == v && !strings.ContainsFunc(v, notInValue)
}

// KeepPost returns the http.Client.CheckRedirect that follows redirects, if it is
// to, that keep the request. Of any other a client makes a GET without what was
// posted, and its answer may well be 200.
func KeepPost(follow bool) func(req *http.Request, via []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if !follow || req.Method != http.MethodPost {
			return fmt.Errorf("server redirects to %s: make that the endpoint's url", ShownURL(req.URL.String()))
		}
		return httpclient.CheckRedirect(req, via)
	}
}
