// Package pkg describes packages: folders of scripts and modules that several
// configs use, with a manifest, the checksums of all files, and a lock file next
// to each config that imports them.
//
//   - [Manifest] is the file weir-package.toml, which the author writes.
//   - [Sums] are the checksums in weir-package.sum. Their digest identifies the
//     content of a package.
//   - [Lock] is the file weir.lock. It lists the packages of a config with the
//     digests that its owner has accepted.
//   - [Signature] is the file weir-package.sum.minisig, which proves who has published
//     the checksums.
//   - [Policy] restricts what a config may import.
//
// The package reads files of packages with limits, and it writes nothing. It
// compiles no script and parses no config.
package pkg

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/weir-run/weir/engine/files"
)

// The names of the files, and of the folders of a package.
const (
	ManifestName = "weir-package.toml" // in the folder of a package
	SumsName     = "weir-package.sum"  // in the folder of a package
	LockName     = "weir.lock"         // next to a config
	VendorDir    = "vendor"            // next to a config: copies of what it imports over the network

	ScriptsDir = "scripts" // of a package, for import.scripts
	ModulesDir = "modules" // of a package, for import.file
)

// API is the version of the interface between weir and packages: the config
// language, the API of scripts and the format of the manifest. It increases if a
// package that works with one version may not work with the next.
const API = 1

// maxText is the maximum size of a manifest, of checksums and of a lock file, in
// bytes.
const maxText = 4 << 20

// IsPackage reports whether dir is the folder of a package.
func IsPackage(dir string) bool {
	_, err := files.Stat(filepath.Join(dir, ManifestName))
	return err == nil
}

// Root returns the folder of the package that contains path: the closest folder
// above it, or path itself, that has a manifest. It returns "" if path does not
// belong to a package. path must be absolute.
func Root(path string) (string, error) {
	for dir := path; ; dir = filepath.Dir(dir) {
		_, err := files.Stat(filepath.Join(dir, ManifestName))
		switch {
		case err == nil:
			return dir, nil
		case dir == path: // path may be a file or may not exist
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		if dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}
