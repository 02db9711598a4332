package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// diskSize is how large the file system is that a run may fill.
const diskSize = "64m"

// Alone makes cmd run where it may mount a file system that nobody else sees:
// in namespaces of its own, which need no root where users may have them.
func Alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// NotAlone reports whether the error of starting a command that Alone prepared
// says that there are no such namespaces here.
func NotAlone(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS)
}

// MountDisk makes dir/data a small file system, in a process that is alone. It
// goes with the process.
func MountDisk(dir string) error {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o777); err != nil {
		return fmt.Errorf("cannot make a directory for the disk: %w", err)
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size="+diskSize); err != nil {
		return fmt.Errorf("cannot mount a small disk on %s: %w", data, err)
	}
	return nil
}
