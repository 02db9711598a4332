// Package grant contains the patterns of what a config grants to scripts and of
// what a script needs: URLs, names of environment variables, files, commands.
// It only decides: package egress performs the requests, and package scripting
// calls it.
//
// A pattern is parsed once and strictly, because a misspelt pattern must not
// grant more than intended. Everything that does not match is refused. A star
// stands for any text; in a file's name and in a host, it stands for one part.
// Whether a URL's address may be connected to is known only after its name was
// resolved: see egress.
package grant

// glob reports whether s matches a pattern in which a star stands for any text,
// including the empty one. It takes linear time per star, and no memory.
func glob(pattern, s string) bool {
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// covers reports whether pattern matches everything that another pattern
// matches. It may return false in complicated cases: a star of other must match
// a star.
func covers(pattern, other string) bool { return glob(pattern, other) }
