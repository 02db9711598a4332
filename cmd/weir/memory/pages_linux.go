package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ReleaseProgram gives the pages of the program's file back to the system.
// Those that are needed come back out of the page cache, many at a time, for
// some microseconds each. Initialising what is compiled in touches most of the
// file once, and hardly any of it again.
//
// Only what is as in the file is given back: not what may be written to, and no
// mapping of which a page was changed, by a debugger or the linker.
func ReleaseProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("cannot find the program's file: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("cannot look at the process's memory: %w", err)
	}
	defer f.Close()
	ms, err := unchanged(f, exe)
	if err != nil {
		return err
	}
	for _, m := range ms {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("cannot give back the program's pages: %w", errno)
		}
	}
	return nil
}

type mapping struct{ from, to uintptr }

// unchanged returns the mappings of a file that cannot be written to and of
// which no page was changed.
//
// Format: https://man7.org/linux/man-pages/man5/proc_pid_smaps.5.html
func unchanged(smaps io.Reader, path string) (ms []mapping, err error) {
	var m mapping
	ours := false
	s := bufio.NewScanner(smaps)
	for s.Scan() {
		name, value, _ := bytes.Cut(s.Bytes(), []byte(" "))
		if !bytes.HasSuffix(name, []byte(":")) {
			line := s.Text()
			m, ours = mapping{}, strings.HasSuffix(line, " "+path)
			if !ours {
				continue
			}
			var perms string
			if m, perms, err = parseMapping(line); err != nil {
				return nil, err
			}
			ours = !strings.Contains(perms, "w") && strings.HasSuffix(perms, "p")
			continue
		}
		if ours && string(name) == "Anonymous:" && string(bytes.TrimSpace(value)) == "0 kB" {
			ms = append(ms, m)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("cannot look at the process's memory: %w", err)
	}
	return ms, nil
}

// parseMapping reads "from-to perms …".
func parseMapping(line string) (m mapping, perms string, err error) {
	span, rest, _ := strings.Cut(line, " ")
	perms, _, _ = strings.Cut(rest, " ")
	from, to, _ := strings.Cut(span, "-")
	a, err1 := strconv.ParseUint(from, 16, strconv.IntSize)
	b, err2 := strconv.ParseUint(to, 16, strconv.IntSize)
	if err := errors.Join(err1, err2); err != nil {
		return m, "", fmt.Errorf("cannot look at the process's memory: unknown line %q: %w", line, err)
	}
	return mapping{uintptr(a), uintptr(b)}, perms, nil
}
