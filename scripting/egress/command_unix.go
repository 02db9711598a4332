//go:build unix

package egress

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// environment returns the environment of a program.
func environment(path string) []string { return []string{"PATH=" + path, "LC_ALL=C"} }

// group is a program with all processes that it started, except those that
// created their own process group.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group {
	g := &group{cmd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			if errors.Is(err, syscall.ESRCH) {
				return os.ErrProcessDone
			}
			return err
		}
		return nil
	}
	return g
}

// kill kills the rest of the group.
func (g *group) kill() { _ = syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) }
