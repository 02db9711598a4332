package pkg

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Policy restricts what a config imports and what its blocks may grant. The zero value
// restricts nothing.
type Policy struct {
	// Sources are patterns of the sources that may be imported; * stands for any text.
	// Without patterns, every source is allowed.
	Sources []string
	// Keys are the public keys of which one must have signed each package. Without keys,
	// no signature is needed. With keys, everything that is imported must be a package.
	Keys []PublicKey
	// DenyGrants are the kinds of grants that no block may have.
	DenyGrants []string
}

// Local returns the source of a local file or folder, which is an absolute path, in the
// form of Policy.Sources: file:///etc/weir/packages/acme.
func Local(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") { // C:/weir
		p = "/" + p
	}
	return "file://" + p
}

// CheckSources returns the error in patterns of sources.
func CheckSources(patterns []string) error {
	var errs []error
	for _, p := range patterns {
		scheme, rest, ok := strings.Cut(p, "://")
		if !ok || rest == "" || strings.Contains(scheme, "*") || hasControl(p) {
			errs = append(errs, fmt.Errorf("%q is not a pattern of sources: write a scheme and a pattern, such as oci://registry.corp/*, git+https://git.corp/* or file:///etc/weir/packages/*", p))
		}
	}
	return errors.Join(errs...)
}

// AllowSource returns an error if the policy does not allow a source, given in the form
// of weir.lock or of Local. A source in the folder home, which is an absolute path, is
// always allowed; "" is no folder.
func (p *Policy) AllowSource(source, home string) error {
	if len(p.Sources) == 0 {
		return nil
	}
	if home != "" {
		local := Local(home)
		if source == local || strings.HasPrefix(source, strings.TrimSuffix(local, "/")+"/") {
			return nil
		}
	}
	if unclean(source) {
		return fmt.Errorf("the policy does not allow %s: its path contains . or .. elements", source)
	}
	if slices.ContainsFunc(p.Sources, func(pattern string) bool { return matches(pattern, source) }) {
		return nil
	}
	return fmt.Errorf("the policy does not allow the source %s, only %s", source, strings.Join(p.Sources, ", "))
}

// unclean reports whether a server or a file system could see another path than a pattern.
func unclean(source string) bool {
	path, err := url.PathUnescape(source)
	if err != nil {
		return true
	}
	for _, element := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' || r == '?' || r == '#' }) {
		if element == "." || element == ".." {
			return true
		}
	}
	return false
}

// matches reports whether a text matches a pattern in which * stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	if len(parts) == 1 {
		return rest == ""
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// Verify returns an error if the policy requires a signature that the content in dir
// does not have. dir is the folder of a package, or "" if the content of a source does
// not belong to a package. s are its checksums; nil computes them.
func (p *Policy) Verify(source, dir string, s Sums) error {
	if len(p.Keys) == 0 {
		return nil
	}
	if dir == "" {
		return fmt.Errorf("the policy requires a signature with %s, and %s is not in a package: put it into a package, and sign it with 'weir pkg sign'", keyNames(p.Keys), source)
	}
	if s == nil {
		var err error
		if s, err = Compute(dir); err != nil {
			return err
		}
	}
	if _, err := ReadManifest(dir); err != nil {
		return err
	}
	if _, err := VerifySignature(dir, s, p.Keys); err != nil {
		return fmt.Errorf("the policy requires a signature: %w", err)
	}
	return nil
}

// AllowGrant returns an error if the policy denies a grant, such as "exec" of
// "/usr/bin/uptime".
func (p *Policy) AllowGrant(kind, what string) error {
	if slices.Contains(p.DenyGrants, kind) {
		return fmt.Errorf("the policy denies the grant %q: deny_grants contains %q", kind+" "+what, kind)
	}
	return nil
}
