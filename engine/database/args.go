package database

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxKeys is the maximum number of elements of Keys: etcd gets at most 128 ranges
// at the same revision, and each element may need two.
const maxKeys = 60

// Arguments are the arguments that all key/value stores have.
type Arguments struct {
	// Prefix of the keys to export, which is removed from their names. A prefix ends
	// at a slash: "/app" is for /app and /app/db, not for /apple. With a slash at the
	// end, the key of this name itself is not read. Default: all keys.
	Prefix string `alloy:"prefix,attr,optional"`
	// Keys to export, with all keys below them, relative to prefix. At most 60.
	// Default: all keys below prefix.
	Keys []string `alloy:"keys,attr,optional"`
	// Whether the values are secrets. A secret is never displayed and can be used only
	// where a secret is expected.
	IsSecret bool `alloy:"is_secret,attr,optional"`
	// Interval between two checks for changes, in addition to notifications of the
	// store.
	PollFrequency time.Duration `alloy:"poll_frequency,attr,optional"`
	// Timeout of a request to the store.
	PollTimeout time.Duration `alloy:"poll_timeout,attr,optional"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{PollFrequency: time.Minute, PollTimeout: 10 * time.Second}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if a.PollFrequency <= 0 {
		errs = append(errs, fmt.Errorf("poll_frequency is %s, must be greater than 0", a.PollFrequency))
	}
	if a.PollTimeout <= 0 {
		errs = append(errs, fmt.Errorf("poll_timeout is %s, must be greater than 0", a.PollTimeout))
	}
	if len(a.Keys) > maxKeys {
		errs = append(errs, fmt.Errorf("keys has %d elements, must have at most %d: write a prefix that they have in common", len(a.Keys), maxKeys))
	}
	return errors.Join(errs...)
}

// prefixes returns the prefixes to read from the store.
func (a *Arguments) prefixes() []string {
	base := strings.TrimRight(a.Prefix, "/")
	switch {
	case len(a.Keys) == 0 && base == "":
		return []string{""}
	case len(a.Keys) == 0:
		return []string{a.Prefix}
	}
	out := make([]string, len(a.Keys))
	for i, k := range a.Keys {
		switch {
		case base != "":
			out[i] = base + "/" + strings.TrimLeft(k, "/")
		case strings.Trim(k, "/") != "":
			out[i] = k
		}
	}
	return out
}

// name returns the name under which a key of the store is exported. ok is false
// if it is neither at nor below one of the prefixes.
func (a *Arguments) name(key string, prefixes []string) (name string, ok bool) {
	key = strings.TrimLeft(key, "/")
	for _, p := range prefixes {
		if within(key, strings.TrimLeft(p, "/")) {
			base := strings.Trim(a.Prefix, "/")
			return "/" + strings.TrimLeft(strings.TrimPrefix(key, base), "/"), true
		}
	}
	return "", false
}

// within reports whether a key is at or below a prefix, both without a leading
// slash.
func within(key, prefix string) bool {
	rest, ok := strings.CutPrefix(key, prefix)
	switch {
	case !ok || prefix == "":
		return ok
	case strings.HasSuffix(prefix, "/"):
		return rest != ""
	}
	return rest == "" || rest[0] == '/'
}
