// Package grant has what a config grants to scripts and what a script says it
// needs, as patterns: URLs, names of environment variables, files, commands.
// It decides and does nothing: package egress goes out, package scripting asks.
//
// The rules to know: a pattern is parsed once, strictly, since what is
// misspelt must not grant more than was meant; what does not match is refused;
// a star stands for any text, in a file's name and in a host for one part of it.
// Whether a URL's address may be connected to is not known before its name is
// resolved: see egress.
package grant

// glob reports whether s matches a pattern in which a star stands for any
// text, also none. It takes linear time per star, and no memory.
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

// covers reports whether pattern matches all that another pattern matches. It
// may say no where that takes thought: a star of the other must meet one.
func covers(pattern, other string) bool { return glob(pattern, other) }
