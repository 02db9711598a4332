package journal

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// The directories to which journald writes. The first one is lost at a reboot.
const (
	volatileDir   = "/run/log/journal"
	persistentDir = "/var/log/journal"
)

// checkHost returns the reason why a host cannot have a journal, or nil.
func checkHost(path, goos string) error {
	if path == "" && goos != "linux" {
		return fmt.Errorf("loki.source.journal needs Linux, and this host runs %s: check and run this config on the Linux host that it is for, "+
			"or set path to a directory with copies of journal files", goos)
	}
	return nil
}

// roots returns the directories to read. journald writes to a subdirectory named
// after the machine ID. If there is no ID, as in some containers, the
// subdirectories of all machines are read.
func roots(path string) []journalfile.Root {
	if path != "" {
		return []journalfile.Root{{Path: path}}
	}
	b, _ := files.Read("/etc/machine-id", 1<<10)
	id := strings.TrimSpace(string(b))
	if _, err := journalfile.ParseID(id); err != nil {
		id = ""
	}
	return []journalfile.Root{{Path: volatileDir, Machine: id, Volatile: true}, {Path: persistentDir, Machine: id}}
}
