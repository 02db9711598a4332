//go:build !unix

package egress

import "os/exec"

// environment returns the environment of a program. os/exec adds the variables
// that Windows programs need to start.
func environment(path string) []string { return []string{"PATH=" + path} }

// group is a program. If it is killed, the processes that it started continue.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group { return &group{cmd} }

func (g *group) kill() {}
