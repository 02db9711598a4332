package memory

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ReleaseProgram returns the pages of the program file to the system. Pages that
// are needed are loaded again from the page cache, many at a time, within some
// microseconds each. The initialisation of all packages touches most of the file
// once, and hardly any of it again.
//
// It only releases memory that is identical to the file: no writable mappings,
// and no mappings with a page that a debugger or the linker changed.
func ReleaseProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("cannot find the program's file: %w", err)
	}
	// Not smaps, which contains the changes but counts all pages of the process:
	// 100 ms for 600 MB.
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("cannot look at the process's memory: %w", err)
	}
	defer maps.Close()
	pages, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return fmt.Errorf("cannot look at the process's memory: %w", err)
	}
	defer pages.Close()
	ms, err := mappings(maps, exe)
	if err != nil {
		return err
	}
	for _, m := range ms {
		changed, err := m.changed(pages, uint64(os.Getpagesize()))
		if err != nil {
			return fmt.Errorf("cannot look at the process's memory: %w", err)
		}
		if changed {
			continue
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, uintptr(m.from), uintptr(m.to-m.from), syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("cannot give back the program's pages: %w", errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ from, to uint64 }

// mappings returns the mappings of a file that are private and not writable.
//
// Format: https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html
func mappings(maps io.Reader, path string) (ms []mapping, err error) {
	s := bufio.NewScanner(maps)
	for s.Scan() {
		line := s.Text()
		if !strings.HasSuffix(line, " "+path) {
			continue
		}
		span, rest, _ := strings.Cut(line, " ")
		perms, _, _ := strings.Cut(rest, " ")
		if strings.Contains(perms, "w") || !strings.HasSuffix(perms, "p") {
			continue
		}
		from, to, _ := strings.Cut(span, "-")
		a, err1 := strconv.ParseUint(from, 16, 64)
		b, err2 := strconv.ParseUint(to, 16, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("cannot look at the process's memory: unknown line %q: %w", line, err)
		}
		ms = append(ms, mapping{a, b})
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("cannot look at the process's memory: %w", err)
	}
	return ms, nil
}

// The relevant bits of a page in pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// changed reports whether a page of m differs from the file.
//
// Format: https://docs.kernel.org/admin-guide/mm/pagemap.html
func (m mapping) changed(pagemap io.ReaderAt, pageSize uint64) (bool, error) {
	const entry = 8
	from, to := m.from/pageSize*entry, m.to/pageSize*entry
	r := bufio.NewReaderSize(io.NewSectionReader(pagemap, int64(from), int64(to-from)), 32<<10)
	for range (to - from) / entry {
		var b [entry]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return false, err
		}
		if page := binary.NativeEndian.Uint64(b[:]); page&(pagePresent|pageSwapped) != 0 && page&pageOfFile == 0 {
			return true, nil
		}
	}
	return false, nil
}
