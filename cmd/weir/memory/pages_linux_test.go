package memory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnchanged(t *testing.T) {
	f := func(smaps string, want ...mapping) {
		t.Helper()
		got, err := unchanged(strings.NewReader(smaps), "/usr/bin/weir")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); d != "" {
			t.Errorf("of\n%s\n-want +got:\n%s", smaps, d)
		}
	}
	entry := func(head, anonymous string) string {
		return head + "\nSize:  8 kB\nRss:   8 kB\nAnonymous:             " + anonymous + " kB\nAnonHugePages:         0 kB\nVmFlags: rd ex mr mw me \n"
	}
	text := "00400000-02a54000 r-xp 00000000 fe:00 123                     /usr/bin/weir"
	rodata := "02a55000-055a2000 r--p 02655000 fe:00 123                     /usr/bin/weir"
	a, b := mapping{0x400000, 0x2a54000}, mapping{0x2a55000, 0x55a2000}

	f(entry(text, "0")+entry(rodata, "0"), a, b)
	// A breakpoint, or addresses that were relocated: the file has it otherwise.
	f(entry(text, "4")+entry(rodata, "0"), b)
	f(entry(text, "0")+entry(rodata, "128"), a)
	// Data, libraries, memory without a file, shared mappings.
	f(entry("055a2000-05683000 rw-p 051a2000 fe:00 123                     /usr/bin/weir", "0"))
	f(entry("7f0000000000-7f0000001000 r-xp 00000000 fe:00 9       /usr/lib/libc.so.6", "0"))
	f(entry("7f0000000000-7f0000001000 r--p 00000000 00:00 0 ", "0"))
	f(entry("7f0000000000-7f0000001000 r--s 00000000 fe:00 123                     /usr/bin/weir", "0"))
	// A system that does not tell has nothing that is known to be unchanged.
	f(text + "\nSize:  8 kB\n")
	f("")

	if _, err := unchanged(strings.NewReader("zz-1 r-xp 0 0:0 1 /usr/bin/weir\n"), "/usr/bin/weir"); err == nil {
		t.Error("a line that cannot be read is no mistake")
	}
}
