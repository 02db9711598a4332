package bench

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// cores is a set of cores of the machine. The zero value means all of them.
type cores struct{ set *unix.CPUSet }

// split returns the first core that this program may use, and the other cores.
func split() (one, rest cores, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return one, rest, fmt.Errorf("cannot ask for the cores: %w", err)
	}
	if all.Count() < 2 {
		return one, rest, fmt.Errorf("cannot give a collector a core of its own: there is only one")
	}
	first := 0
	for !all.IsSet(first) {
		first++
	}
	all.Clear(first)
	one.set = new(unix.CPUSet)
	one.set.Set(first)
	rest.set = &all
	return one, rest, nil
}

// count returns the number of cores, 0 for all.
func (c cores) count() int {
	if c.set == nil {
		return 0
	}
	return c.set.Count()
}

// start starts a program that stays on these cores. Child processes inherit the
// cores of the thread that starts them.
func (c cores) start(cmd *exec.Cmd) error {
	if c.set == nil {
		return cmd.Start()
	}
	runtime.LockOSThread()
	var was unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot ask for the cores: %w", err)
	}
	if err := unix.SchedSetaffinity(0, c.set); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot choose cores: %w", err)
	}
	err := cmd.Start()
	if unix.SchedSetaffinity(0, &was) == nil {
		runtime.UnlockOSThread() // otherwise, the thread ends with its goroutine
	}
	return err
}
