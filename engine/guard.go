package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"

	"github.com/weir-run/weir/engine/files"
)

// panicError is the error of a call of a component that panicked.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panicked: %v", p.value) }

// guard calls into a component.
func guard(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return call()
}

// sameType reports whether exports have the type in the registration.
func sameType(exports, zero any) bool { return reflect.TypeOf(exports) == reflect.TypeOf(zero) }

// nearby returns a path in the form in which people write it: relative to the
// working directory if it is below that.
func nearby(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// existing returns the files that exist, and those for which it is unknown
// because the file system does not respond.
func existing(paths []string) (out []string) {
	for _, f := range paths {
		if _, err := files.StatSoon(f); err == nil || errors.Is(err, files.ErrHung) {
			out = append(out, f)
		}
	}
	return out
}

// isGone reports whether a file certainly does not exist.
func isGone(path string) bool {
	_, err := files.StatSoon(path)
	return errors.Is(err, fs.ErrNotExist)
}
