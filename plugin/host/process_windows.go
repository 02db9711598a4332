package host

import "os/exec"

// ownGroup does nothing: weir ends the plugin.
func ownGroup(*exec.Cmd) {}
