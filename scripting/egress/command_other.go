//go:build !unix

package egress

import "os/exec"

// environment is what a program finds in its environment. Windows' own need
// theirs to start at all, which os/exec adds.
func environment(path string) []string { return []string{"PATH=" + path} }

// group is a program. What it starts goes on when it is killed.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group { return &group{cmd} }

func (g *group) kill() {}
