package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// diskSize is the size of the file system that a run may fill.
const diskSize = "64m"

// Alone makes cmd run in its own namespaces, where it may mount a file system
// that other processes do not see. This needs no root privileges if users may
// create namespaces.
func Alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
}

// NotAlone reports whether err, from starting a command prepared by Alone, means
// that the system does not allow such namespaces.
func NotAlone(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS)
}

// MountDisk mounts a small file system at dir/data. The process must run alone.
// The file system is removed when the process ends.
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
