// Package quickstart contains the config that `weir run --sandbox` runs if no
// config is given.
package quickstart

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

//go:embed quickstart.alloy
var linux string

//go:embed quickstart_other.alloy
var other string // without the host's metrics, which require Linux

// Text returns the quickstart config for a GOOS.
func Text(goos string) string {
	if goos == "linux" {
		return linux
	}
	return other
}

// Write writes the quickstart config to dir, which must exist, and returns its
// path. It replaces an existing copy.
func Write(dir string) (path string, err error) {
	path = filepath.Join(dir, "quickstart.alloy")
	if err := os.WriteFile(path, []byte(Text(runtime.GOOS)), 0o600); err != nil {
		return "", fmt.Errorf("cannot write the quickstart: %w", err)
	}
	return path, nil
}
