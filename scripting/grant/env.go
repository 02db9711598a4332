package grant

import (
	"fmt"
	"regexp"
)

var (
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)
)

// Env is a pattern of names of environment variables: REGION, WEIR_*. Create it
// with ParseEnv.
type Env struct{ text string }

// ParseEnv parses a name, or a prefix of names followed by a star.
func ParseEnv(text string) (Env, error) {
	if len(text) > maxPattern || !envPattern.MatchString(text) {
		return Env{}, fmt.Errorf("cannot use %q as the name of an environment variable: write a name, or the beginning of names with a star after it, WEIR_*", text)
	}
	return Env{text}, nil
}

// EnvName reports whether name is a valid variable name for scripts.
func EnvName(name string) bool { return len(name) <= maxPattern && envName.MatchString(name) }

// String returns the pattern as written.
func (p Env) String() string { return p.text }

// Match reports whether the pattern matches a name.
func (p Env) Match(name string) bool { return glob(p.text, name) }
