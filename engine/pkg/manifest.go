package pkg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/pelletier/go-toml/v2"

	"github.com/weir-run/weir/engine/files"
)

// Manifest describes a package.
type Manifest struct {
	// Name is made of lower-case words that are separated by slashes, such as
	// acme/http.
	Name string `toml:"name"`
	// Version is a semantic version without a leading v, such as 1.4.0.
	Version string `toml:"version"`
	// API is the version of weir's interface that the package was written for.
	API int `toml:"api"`
	// License is an SPDX expression, or the word proprietary.
	License string `toml:"license"`
	// Description is a sentence. It may be empty.
	Description string `toml:"description"`
	// Needs are the external resources that the scripts of the package need, in the
	// form of weir audit, such as "http https://geo.internal/*". A block that uses
	// such a script must grant them.
	Needs []string `toml:"needs"`
}

// maxName is the maximum length of the name of a package.
const maxName = 100

var packageName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*(/[a-z0-9]+([_-][a-z0-9]+)*)*$`)

// ReadManifest reads the manifest of the package in dir. The error joins all
// mistakes; each has its position.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	text, err := files.Read(path, maxText)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifest of a package: %w", err)
	}
	return ParseManifest(path, text)
}

// ParseManifest parses a manifest; file is the name in errors. The error joins
// all mistakes.
func ParseManifest(file string, text []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := decode(file, text, m); err != nil {
		return nil, err
	}
	var errs []error
	wrong := func(key, format string, args ...any) {
		at := file
		if line := lineOf(text, key); line > 0 {
			at = fmt.Sprintf("%s:%d", file, line)
		}
		errs = append(errs, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...)))
	}
	if err := CheckName(m.Name); err != nil {
		wrong("name", "%v", err)
	}
	if err := CheckVersion(m.Version); err != nil {
		wrong("version", "%v", err)
	}
	switch {
	case m.API < 1:
		wrong("api", "api is missing: write api = %d, the version of weir's interface that the package is written for", API)
	case m.API > API:
		wrong("api", "the package is written for version %d of weir's interface, and this weir has version %d: use a newer weir", m.API, API)
	}
	if err := CheckLicense(m.License); err != nil {
		wrong("license", "%v", err)
	}
	if hasControl(m.Description) {
		wrong("description", "description must be one line without control characters")
	}
	for i, n := range m.Needs {
		switch kind, what, _ := strings.Cut(n, " "); {
		case kind == "" || hasControl(n) || what != strings.TrimSpace(what):
			wrong("needs", `needs has %q: write a kind and a pattern as in the output of 'weir audit', such as "http https://geo.internal/*"`, n)
		case slices.Contains(m.Needs[:i], n):
			wrong("needs", "needs has %q twice", n)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// CheckName returns an error if name cannot be the name of a package.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New(`name is missing: write name = "acme/http", for example`)
	case !packageName.MatchString(name) || len(name) > maxName:
		return fmt.Errorf("name is %q, must be lower-case words with digits, separated by - _ or /, such as acme/http, and at most %d bytes long", name, maxName)
	}
	return nil
}

// CheckVersion returns an error if v is not a semantic version.
func CheckVersion(v string) error {
	if v == "" {
		return errors.New(`version is missing: write version = "0.1.0", for example`)
	}
	if _, err := semver.StrictNewVersion(v); err != nil {
		return fmt.Errorf("version is %q, must be a semantic version without a leading v, such as 1.4.0", v)
	}
	return nil
}

// CheckLicense returns an error if text cannot name a licence.
func CheckLicense(text string) error {
	if strings.TrimSpace(text) == "" || hasControl(text) {
		return errors.New(`license is missing: write an SPDX identifier such as "Apache-2.0", or "proprietary"`)
	}
	return nil
}

// Text returns the manifest as a file, with comments for its author.
func (m *Manifest) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name = %s\nversion = %s\n", quote(m.Name), quote(m.Version))
	fmt.Fprintf(&b, "# The version of weir's interface that the package is written for.\napi = %d\n", m.API)
	fmt.Fprintf(&b, "# An SPDX identifier, or \"proprietary\".\nlicense = %s\ndescription = %s\n", quote(m.License), quote(m.Description))
	b.WriteString("# What the scripts of the package need, as in the output of 'weir audit'.\nneeds = [")
	for i, n := range m.Needs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(n))
	}
	b.WriteString("]\n")
	return b.String()
}

// quote returns s as a TOML string. A JSON string is one, unless it contains
// U+007F, which hasControl finds. The encoder of go-toml would add 70 KB to weir.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string has no error
	return string(b)
}

// decode decodes TOML. It refuses unknown keys. The error joins all mistakes with
// their positions.
func decode(file string, text []byte, v any) error {
	d := toml.NewDecoder(bytes.NewReader(text))
	err := d.DisallowUnknownFields().Decode(v)
	if missing, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		var errs []error
		for _, e := range missing.Errors {
			line, col := e.Position()
			errs = append(errs, fmt.Errorf("%s:%d:%d: unknown key %s", file, line, col, strings.Join(e.Key(), ".")))
		}
		return errors.Join(errs...)
	}
	if e, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, col := e.Position()
		return fmt.Errorf("%s:%d:%d: %s", file, line, col, strings.TrimPrefix(e.Error(), "toml: "))
	}
	if err != nil {
		return fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "toml: "))
	}
	return nil
}

// lineOf returns the line in which a key is set, or 0.
func lineOf(text []byte, key string) int {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if k, _, ok := bytes.Cut(line, []byte("=")); ok && string(bytes.TrimSpace(k)) == key {
			return n
		}
	}
	return 0
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
