package engine

import (
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
)

// panicError is what a call of a component that panicked comes to.
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

// oneLine makes one line of a message of several.
func oneLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Join(lines, "  ")
}

// sameType reports whether exports have the type that a registration says.
func sameType(exports, zero any) bool { return reflect.TypeOf(exports) == reflect.TypeOf(zero) }

// existing returns the files that are there.
func existing(files []string) (out []string) {
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			out = append(out, f)
		}
	}
	return out
}
