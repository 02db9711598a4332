package component

import (
	"regexp"
	"strings"
)

var (
	urlText   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]*`)
	urlUser   = regexp.MustCompile(`^([^:]*://[^/@:?#]*:)[^/?#]*@`)
	urlValues = regexp.MustCompile(`=[^&#;]+`)
)

// HideURLs returns text without what may be secret in the URLs in it: the password
// of a user and the values of a query become "(hidden)". It is for whatever people
// see: logs, health, status. Errors of HTTP clients have the whole URL in them.
func HideURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlText.ReplaceAllStringFunc(text, func(u string) string {
		u = urlUser.ReplaceAllString(u, "${1}(hidden)@")
		at, query, has := strings.Cut(u, "?")
		if !has {
			return u
		}
		return at + "?" + urlValues.ReplaceAllString(query, "=(hidden)")
	})
}
