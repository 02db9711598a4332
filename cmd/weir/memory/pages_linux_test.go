package memory

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestMappings(t *testing.T) {
	f := func(maps string, want ...mapping) {
		t.Helper()
		got, err := mappings(strings.NewReader(maps), "/usr/bin/weir")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); d != "" {
			t.Errorf("of\n%s\n-want +got:\n%s", maps, d)
		}
	}
	f(`00400000-02a54000 r-xp 00000000 fe:00 123                     /usr/bin/weir
02a55000-055a2000 r--p 02655000 fe:00 123                     /usr/bin/weir
055a2000-05683000 rw-p 051a2000 fe:00 123                     /usr/bin/weir
05683000-076e7000 rw-p 00000000 00:00 0
c000000000-c004000000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r-xp 00000000 fe:00 9               /usr/lib/libc.so.6
7f0000001000-7f0000002000 r--s 00000000 fe:00 123             /usr/bin/weir
7ffff7fc0000-7ffff7fc4000 r--p 00000000 00:00 0               [vvar]
`, mapping{0x400000, 0x2a54000}, mapping{0x2a55000, 0x55a2000})
	f("")
	f("00400000-02a54000 r-xp 00000000 fe:00 123 /usr/bin/weird\n")

	if _, err := mappings(strings.NewReader("zz-1 r-xp 0 0:0 1 /usr/bin/weir\n"), "/usr/bin/weir"); err == nil {
		t.Error("a line that cannot be read is no mistake")
	}
}

func TestChanged(t *testing.T) {
	const file, anonymous, swapped, absent = pagePresent | pageOfFile, pagePresent, pageSwapped, 0
	f := func(want bool, pages ...uint64) {
		t.Helper()
		var b []byte
		for _, p := range append([]uint64{anonymous}, append(pages, anonymous)...) { // a neighbouring mapping
			b = binary.NativeEndian.AppendUint64(b, p)
		}
		m := mapping{4096, 4096 * uint64(len(pages)+1)}
		got, err := m.changed(bytes.NewReader(b), 4096)
		if err != nil || got != want {
			t.Errorf("pages %x: changed %t, %v, want %t", pages, got, err, want)
		}
	}
	f(false, file, absent, file)
	f(false, absent)
	f(true, file, anonymous, file) // a breakpoint, or a relocated address
	f(true, file, swapped)
	if _, err := (mapping{0, 8192}).changed(bytes.NewReader(make([]byte, 8)), 4096); err == nil {
		t.Error("pages that the system does not tell are no mistake")
	}
}

// TestChangedHere checks that this system reports changes: a written page of a
// mapped file is private to the process.
func TestChangedHere(t *testing.T) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := os.Getpagesize()
	b, err := syscall.Mmap(int(f.Fd()), 0, 4*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(b); err != nil {
			t.Error(err)
		}
	}()
	pages, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Skipf("this system does not tell: %v", err)
	}
	defer pages.Close()
	from := uint64(uintptr(unsafe.Pointer(&b[0])))
	m := mapping{from, from + uint64(len(b))}
	check := func(want bool) {
		t.Helper()
		if got, err := m.changed(pages, uint64(size)); err != nil || got != want {
			t.Errorf("changed %t, %v, want %t", got, err, want)
		}
	}
	if b[0] != 0x7f {
		t.Fatalf("the program begins with %x", b[0])
	}
	check(false)
	b[size] = 1
	check(true)
}
