// Package quickstart is the config that `weir run --sandbox` runs when it is
// given none.
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
var other string // without the host's metrics, which are Linux's

// Text returns the quickstart for a GOOS.
func Text(goos string) string {
	if goos == "linux" {
		return linux
	}
	return other
}

// Write puts the quickstart into dir, which must be there, and returns its
// path. A copy that is there already is replaced.
func Write(dir string) (path string, err error) {
	path = filepath.Join(dir, "quickstart.alloy")
	if err := os.WriteFile(path, []byte(Text(runtime.GOOS)), 0o600); err != nil {
		return "", fmt.Errorf("cannot write the quickstart: %w", err)
	}
	return path, nil
}
