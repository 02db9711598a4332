//go:build !linux

package bench

import (
	"fmt"
	"runtime"
)

func readUsage(pid int) (usage, error) {
	return usage{}, fmt.Errorf("cannot measure process %d: that takes Linux's /proc, and this is %s; targets and sink work here", pid, runtime.GOOS)
}

func busy() (float64, error) {
	return 0, fmt.Errorf("cannot measure the machine: that takes Linux's /proc, and this is %s", runtime.GOOS)
}

func describeMachine(*Machine) {}
