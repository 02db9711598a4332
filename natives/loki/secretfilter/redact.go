package secretfilter

import (
	"cmp"
	"crypto/sha1" // identifies a secret in redact_with
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted returns line with the secrets in fs replaced. If secrets overlap, the
// replacement of the first and longest is used for all of them.
func redacted(line string, fs []finding, with func(finding) string) string {
	type part struct {
		from, to int
		f        finding
	}
	var parts []part
	for _, f := range fs {
		for from := 0; ; {
			i := strings.Index(line[from:], f.secret)
			if i < 0 {
				break
			}
			from += i + len(f.secret)
			parts = append(parts, part{from - len(f.secret), from, f})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var b strings.Builder
	done := 0
	for _, p := range parts {
		if p.from >= done {
			b.WriteString(line[done:p.from])
			b.WriteString(with(p.f))
		}
		done = max(done, p.to)
	}
	b.WriteString(line[done:])
	return b.String()
}

// inPlaceOf returns the replacement for a finding.
func (a *Arguments) inPlaceOf(f finding) string {
	if a.RedactWith == "" {
		return masked(f.secret, a.RedactPercent)
	}
	text := strings.ReplaceAll(a.RedactWith, "$SECRET_NAME", f.rule.id)
	if strings.Contains(text, "$SECRET_HASH") {
		sum := sha1.Sum([]byte(f.secret))
		text = strings.ReplaceAll(text, "$SECRET_HASH", hex.EncodeToString(sum[:]))
	}
	return text
}

// masked returns the beginning of a secret, without the given percentage of it.
func masked(secret string, percent uint) string {
	switch {
	case percent >= 100:
		return "REDACTED"
	case percent == 0:
		percent = defaultPercent
	}
	n := int(math.RoundToEven(float64(len(secret)) * float64(100-percent) / 100))
	for n > 0 && n < len(secret) && !utf8.RuneStart(secret[n]) {
		n--
	}
	return secret[:n] + "..."
}
