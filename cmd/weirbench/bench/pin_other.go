//go:build !linux

package bench

import (
	"errors"
	"os/exec"
)

// cores are some of the machine's cores; the zero value is all of them.
type cores struct{}

// split gives one core to one, and the others to rest.
func split() (one, rest cores, err error) {
	return one, rest, errors.New("cannot give a collector a core of its own: that is done with Linux's sched_setaffinity")
}

func (cores) count() int { return 0 }

func (cores) start(cmd *exec.Cmd) error { return cmd.Start() }
