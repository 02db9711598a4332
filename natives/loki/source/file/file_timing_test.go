package file

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// log200 returns n lines of 200 bytes.
func log200(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%08d %s\n", i, strings.Repeat("x", 190))
	}
	return b.Bytes()
}

// BenchmarkSplit measures the cost of splitting lines of 200 bytes.
func BenchmarkSplit(b *testing.B) {
	data := log200(1300)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		lines, _ := plain.split(data)
		n += len(lines)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/line")
}

// BenchmarkScanner measures bufio.Scanner with the same lines.
func BenchmarkScanner(b *testing.B) {
	data := log200(1300)
	n := 0
	for b.Loop() {
		for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); n++ {
			_ = s.Text()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/line")
}

// BenchmarkChunk reads ranges of a file and splits them.
func BenchmarkChunk(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	if err := os.WriteFile(path, log200(100_000), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := openFile(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	lf := newLogFile(f, fi, path, plain, "")
	for b.Loop() {
		if !lf.hasUnread() {
			lf = newLogFile(f, fi, path, plain, "")
		}
		c, ok, err := lf.nextChunk(chunkSize, false)
		if !ok || err != nil {
			b.Fatal(ok, err)
		}
		lf.cursor.advance(c)
		n += len(c.lines)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/line")
}

// BenchmarkIdleLook measures the check of a file to which nothing was written.
func BenchmarkIdleLook(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	id, _ := identify(nil, fi)
	lf := &logFile{id: id, seen: observation{raw: fi.Size(), written: fi.ModTime()}}
	f := &follower{phase: following, target: target{path: path}, files: fileList{all: []*logFile{lf}, current: lf}}
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		if err := f.checkPath(now); err != nil {
			b.Fatal(err)
		}
		if next, _ := f.pickFile(now); next != nil {
			b.Fatal("there is something to read")
		}
	}
}
