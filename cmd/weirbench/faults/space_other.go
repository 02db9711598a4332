//go:build !linux

package faults

import (
	"errors"
	"os/exec"
)

// Alone does nothing: only Linux lets users mount file systems.
func Alone(*exec.Cmd) {}

// NotAlone returns true, because namespaces only exist on Linux.
func NotAlone(error) bool { return true }

// MountDisk returns an error.
func MountDisk(string) error { return errors.New("cannot mount a small disk: only Linux can") }
