//go:build !linux

package bench

import (
	"errors"
	"os/exec"
)

// cores is a set of cores of the machine. The zero value means all of them.
type cores struct{}

// split returns one core, and the other cores.
func split() (one, rest cores, err error) {
	return one, rest, errors.New("cannot give a collector a core of its own: that is done with Linux's sched_setaffinity")
}

func (cores) count() int { return 0 }

func (cores) start(cmd *exec.Cmd) error { return cmd.Start() }
