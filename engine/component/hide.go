package component

import (
	"regexp"
	"strings"
)

var (
	urlText   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]*`)
	urlUser   = regexp.MustCompile(`^([^:]*://[^/@:?#]*:)[^/?#]*@`)
	urlValues = regexp.MustCompile(`=[^&#;]+`)
	// plainSegment is a part of a path that is no secret: words in lower case, such
	// as remote_write, a version, a short number or a short word with one, such as
	// k8s, or a star of a pattern. Secrets that services give out have upper case,
	// digits between letters or more letters.
	plainSegment = regexp.MustCompile(`^([a-z]+([._-][a-z]+)*|[a-z]{0,5}[0-9]{1,4}[a-z]?|\*+)?$`)
)

const (
	hiddenPart = "(hidden)"
	// maxPlainSegment is how long a plain part of a path may be, in bytes.
	maxPlainSegment = 32
)

// HideURLs returns text without what may be secret in the URLs in it: the password
// of a user, the values of a query, and a path from its first part on that is not
// plain words become "(hidden)". It is for whatever people see: logs, health,
// status, metrics. Errors of HTTP clients have the whole URL in them.
func HideURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlText.ReplaceAllStringFunc(text, func(u string) string {
		bare := strings.TrimRight(u, ".,:;!)]}") // which belong to the sentence
		if hidden := u[:min(len(bare)+1, len(u))]; strings.HasSuffix(hidden, hiddenPart) {
			bare = hidden // it went through here before
		}
		after := u[len(bare):]
		u = urlUser.ReplaceAllString(bare, "${1}"+hiddenPart+"@")
		end := strings.IndexAny(u, "?#")
		if end < 0 {
			end = len(u)
		}
		at, rest := hidePath(u[:end]), u[end:]
		if strings.HasPrefix(rest, "?") {
			rest = urlValues.ReplaceAllString(rest, "="+hiddenPart)
		}
		return at + rest + after
	})
}

// hidePath hides the path of a URL that has no query.
func hidePath(u string) string {
	scheme, rest, _ := strings.Cut(u, "://")
	host, path, has := strings.Cut(rest, "/")
	if !has || scheme == "file" || scheme == "unix" {
		return u
	}
	at := len(scheme) + len("://") + len(host) + 1
	for part := range strings.SplitSeq(path, "/") {
		if len(part) > maxPlainSegment || !plainSegment.MatchString(part) {
			return u[:at] + hiddenPart
		}
		at += len(part) + 1
	}
	return u
}
