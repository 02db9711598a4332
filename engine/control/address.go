package control

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxPath is the maximum length of sockaddr_un on every system, without its
// final zero.
const maxPath = 103

// address returns a name for a socket that is short enough for the system. free
// releases the resources of the name, which is then invalid.
func address(path string) (addr string, free func(), err error) {
	none := func() {}
	if len(path) <= maxPath {
		return path, none, nil
	}
	// weir never changes its working directory.
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && len(rel) <= maxPath {
			return rel, none, nil
		}
	}
	addr, free, err = detour(path)
	if err != nil {
		return "", nil, err
	}
	if addr == "" {
		return "", nil, fmt.Errorf("its path has %d bytes, more than the %d a socket can have: choose a shorter --storage.path: %s", len(path), maxPath, path)
	}
	return addr, free, nil
}
