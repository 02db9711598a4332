//go:build !linux

package faults

import (
	"errors"
	"os/exec"
)

// Alone does nothing: only Linux lets users mount file systems.
func Alone(*exec.Cmd) {}

// NotAlone reports true: nobody is, here.
func NotAlone(error) bool { return true }

// MountDisk says that it cannot.
func MountDisk(string) error { return errors.New("cannot mount a small disk: only Linux can") }
