package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, the unit in which the kernel counts CPU time. It is
// part of the kernel's interface and the same on all architectures that Go
// supports.
const ticksPerSecond = 100

// readUsage returns the resources that a process has used.
//
// Format: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
func readUsage(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	// The name in parentheses may contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("cannot measure process %d: /proc/%d/stat has %d fields", pid, pid, len(fields))
	}
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return u, fmt.Errorf("cannot measure process %d: %w", pid, err)
		}
		u.CPU += float64(n) / ticksPerSecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("cannot measure process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		to := map[string]*int64{"VmHWM": &u.Peak, "VmRSS": &u.RSS, "RssAnon": &u.Anon}[name]
		if to == nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		if err != nil {
			return u, fmt.Errorf("cannot measure process %d: %w", pid, err)
		}
		*to = n << 10
	}
	if u.Peak == 0 {
		return u, fmt.Errorf("cannot measure process %d: the system does not say its peak memory", pid)
	}
	return u, nil
}

// busy returns the CPU seconds that all processes of the machine have used.
func busy() (float64, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("cannot measure the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return 0, fmt.Errorf("cannot measure the machine: /proc/stat begins with %q", line)
	}
	var sum float64
	for i, f := range fields[1:8] { // user nice system idle iowait irq softirq
		if i == 3 || i == 4 {
			continue
		}
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot measure the machine: %w", err)
		}
		sum += float64(n) / ticksPerSecond
	}
	return sum, nil
}

// describeMachine sets the names of the processor and the kernel and the size of
// the memory.
func describeMachine(m *Machine) {
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	for line := range strings.Lines(read("/proc/meminfo")) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == "MemTotal" {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			m.Memory = n << 10
		}
	}
	m.Kernel = strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
}

// read returns the content of a file, or "" if it cannot be read: a missing
// description must not fail a measurement.
func read(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
