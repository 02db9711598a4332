package component

import (
	"regexp"
	"strings"
)

var (
	urlText   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]*`)
	urlUser   = regexp.MustCompile(`^([^:]*://[^/@:?#]*:)[^/?#]*@`)
	urlValues = regexp.MustCompile(`=[^&#;]+`)
	// plainSegment is a path segment that is not secret: lower-case words, such as
	// remote_write; a version; a short number; a short word with a number, such as
	// k8s; or a pattern with a star. Secrets that services generate have upper
	// case, digits between letters, or more letters.
	plainSegment = regexp.MustCompile(`^([a-z]+([._-][a-z]+)*|[a-z]{0,5}[0-9]{1,4}[a-z]?|\*+)?$`)
)

const (
	hiddenPart = "(hidden)"
	// maxPlainSegment is the maximum length of a plain path segment, in bytes.
	maxPlainSegment = 32
)

// HideURLs returns text with the possible secrets in its URLs replaced by
// "(hidden)": the password of a user, the values of a query, and a path from
// its first segment on that is not plain. Use it for all text that people see:
// logs, health, status, metrics. Errors of HTTP clients contain the whole URL.
func HideURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlText.ReplaceAllStringFunc(text, func(u string) string {
		bare := strings.TrimRight(u, ".,:;!)]}") // punctuation belongs to the sentence
		if hidden := u[:min(len(bare)+1, len(u))]; strings.HasSuffix(hidden, hiddenPart) {
			bare = hidden // already hidden by an earlier call
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
