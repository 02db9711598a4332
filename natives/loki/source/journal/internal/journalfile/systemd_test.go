package journalfile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile/journalfiletest"
)

// export returns all entries in the form of journalctl --output=export.
func export(t *testing.T, r *journalfile.Reader) string {
	t.Helper()
	var b strings.Builder
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		fmt.Fprintf(&b, "__CURSOR=%s\n__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%s\n", e.Cursor, e.Cursor.Realtime, e.Cursor.Monotonic, e.Cursor.BootID)
		for _, f := range e.Fields {
			switch {
			case f.Name == "_BOOT_ID": // journalctl prints it separately
			case strings.ContainsFunc(f.Value, func(c rune) bool { return c < ' ' && c != '\t' || c >= 0x7f }):
				b.WriteString(f.Name + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(f.Value)))) + f.Value + "\n")
			default:
				b.WriteString(f.Name + "=" + f.Value + "\n")
			}
		}
		b.WriteString("\n")
	}
	if ls := r.Losses(); len(ls) != 0 {
		t.Errorf("got losses %v, want none", ls)
	}
	return b.String()
}

// TestSystemdFiles reads files in testdata that systemd wrote.
func TestSystemdFiles(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "entries.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"regular", "compact"} {
		packed, err := os.ReadFile(filepath.Join("testdata", name+".journal.zst"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, name+".journal"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.WriteTo(f); err != nil {
			t.Fatal(err)
		}
		z.Close()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, want := export(t, open(t, dir, journalfile.Options{})), string(want)
		if d := cmp.Diff(normal(want), normal(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// normal returns an export without the ID of the sequence.
func normal(export string) string {
	var out []string
	for line := range strings.Lines(export) {
		if s, ok := strings.CutPrefix(line, "__CURSOR=s="); ok {
			line = "__CURSOR=" + s[32:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

// journalctl returns the output of journalctl for a directory. If it is not
// installed, the test is skipped: .ci/packages.sh installs it.
func journalctl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("journalctl")
	if err != nil {
		t.Skip("journalctl is not installed (Debian: systemd)")
	}
	cmd := exec.Command(path, append([]string{"--directory=" + dir, "--quiet", "--no-pager"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("journalctl: %v\n%s", err, stderr.String())
	}
	return string(out)
}

// TestCompression compares with journalctl for files of every kind. The files
// with XZ and LZ4 come from older versions of systemd; the installed one writes
// Zstandard.
func TestCompression(t *testing.T) {
	for _, kind := range []string{"xz", "lz4", "zstd"} {
		for _, compact := range []bool{false, true} {
			dir := t.TempDir()
			w := journalfiletest.Create(t, filepath.Join(dir, "system.journal"), sequence, compact)
			w.Append(at(1), "MESSAGE=plain", "A=b")
			w.Compress(kind)
			w.Append(at(2), "A=b", "MESSAGE="+strings.Repeat("long ", 40_000))
			w.Append(at(3), "MESSAGE="+strings.Repeat("another ", 1000))
			r := open(t, dir, journalfile.Options{})
			got := export(t, r)
			if n := strings.Count(got, "long "); n != 40_000 {
				t.Errorf("%s: the long field has %d words, want 40000", kind, n)
			}
			t.Run(kind, func(t *testing.T) {
				if d := cmp.Diff(journalctl(t, dir, "--output=export"), got); d != "" {
					t.Errorf("journalctl and ours (-want +got):\n%.2000s", d)
				}
			})
		}
	}
}

const remoteTool = "/lib/systemd/systemd-journal-remote"

// remote writes entries to a journal with systemd's own writer.
func remote(t *testing.T, path string, entries string) {
	t.Helper()
	if _, err := os.Stat(remoteTool); err != nil {
		t.Skip("systemd-journal-remote is not installed (Debian: systemd-journal-remote)")
	}
	cmd := exec.Command(remoteTool, "--output="+path, "-")
	cmd.Stdin = strings.NewReader(entries)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot write a journal: %v\n%s", err, out)
	}
}

// TestSystemdRotation compares 100,000 entries, which systemd rotates, with the
// output of journalctl, field by field.
func TestSystemdRotation(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 100,000 entries")
	}
	dir := t.TempDir()
	const n = 100_000
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=0123456789abcdef0123456789abcdef\n"+
			"_SYSTEMD_UNIT=u%d.service\nPRIORITY=%d\nSEQ=%d\nID=%x\nMESSAGE=entry number %d%s\n\n",
			1_790_000_000_000_000+i*1000, 1000+i*1000, i%20, i%8, i, i, i, strings.Repeat(" and more", i%100))
	}
	remote(t, filepath.Join(dir, "system.journal"), in.String())
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Errorf("there are %d files, want the journal to be rotated", len(files))
	}
	got := export(t, open(t, dir, journalfile.Options{}))
	want := journalctl(t, dir, "--output=export")
	if g, w := strings.Count(got, "__CURSOR="), strings.Count(journalctl(t, dir, "--output=json"), "\n"); g != n || w != n {
		t.Errorf("got %d entries, and %d by journalctl, want %d", g, w, n)
	}
	if got != want {
		g, w := strings.Split(got, "\n\n"), strings.Split(want, "\n\n")
		for i := range g {
			if g[i] != w[i] {
				t.Fatalf("entry %d differs (-want +got):\n%s", i, cmp.Diff(w[i], g[i]))
			}
		}
	}
}
