package host

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the process into a group of its own, so that Ctrl-C on a terminal
// reaches weir alone, which then ends the plugin. If weir is killed, the kernel ends
// the plugin.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
