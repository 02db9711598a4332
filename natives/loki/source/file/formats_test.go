package file_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"github.com/weir-run/weir/natives/loki/source/file"
)

func encode(t *testing.T, e encoding.Encoding, s string) string {
	t.Helper()
	out, err := e.NewEncoder().String(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEncodings(t *testing.T) {
	const text = "grün\r\nЇ⊊ਊ\n\nzwei" // contains the bytes of a line end within characters
	le, be := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	f := func(name string, e encoding.Encoding, mark string) {
		t.Helper()
		scene(t, func(h *harness) {
			h.args.Encoding = name
			all := mark + encode(t, e, text)
			h.append("app.log", all[:len(all)-3]) // within a character
			h.start()
			h.want("grün", "Ї⊊ਊ", "")
			h.append("app.log", all[len(all)-3:]+encode(t, e, "\ndrei\n"))
			h.pass(time.Second)
			h.want("grün", "Ї⊊ਊ", "", "zwei", "drei")
			h.stop()
			h.append("app.log", encode(t, e, "vier\n"))
			h.start()
			h.want("grün", "Ї⊊ਊ", "", "zwei", "drei", "vier")
		})
	}
	f("", encoding.Nop, "")
	f("utf-8", encoding.Nop, "")
	f("", encoding.Nop, "\xef\xbb\xbf")
	f("UTF-16LE", le, "")
	f("UTF-16BE", be, "")
	f("UTF-16", be, "")
	f("UTF-16", le, "\xff\xfe")
	f("UTF-16", be, "\xfe\xff")
	f("", le, "\xff\xfe") // the byte order mark takes precedence
	f("GBK", be, "\xfe\xff")

	scene(t, func(h *harness) {
		h.args.Encoding = "GBK"
		h.append("app.log", encode(t, simplifiedchinese.GBK, "你好\n世界\n"))
		h.start()
		h.want("你好", "世界")
	})
}

// bz2 of "one\ntwo\nlast": there is no compressor in Go.
const bz2Text = "425a6839314159265359568150b7000003c180001022058c80200031064c410d311a329a527467c5dc914e142415a0542dc0"

func compressed(t *testing.T, format, text string) string {
	t.Helper()
	var b bytes.Buffer
	switch format {
	case "gz":
		w := gzip.NewWriter(&b)
		w.Write([]byte(text))
		w.Close()
	case "z":
		w := zlib.NewWriter(&b)
		w.Write([]byte(text))
		w.Close()
	default:
		raw, err := hex.DecodeString(bz2Text)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(raw)
	}
	return b.String()
}

func decompressing(h *harness, format string) {
	h.args.Decompression = file.Decompression{Enabled: true, Format: file.Format(format)}
}

func TestDecompression(t *testing.T) {
	f := func(format string) {
		t.Helper()
		scene(t, func(h *harness) {
			decompressing(h, format)
			h.append("app.log", compressed(t, format, "one\ntwo\nlast"))
			h.start()
			h.want("one", "two", "last")
			h.pass(time.Minute)
			h.stop()
			h.start()
			h.pass(time.Minute)
			h.want("one", "two", "last")
			h.rename("app.log", "other")
			h.append("app.log", compressed(t, format, "one\ntwo\nlast"))
			h.pass(time.Second)
			h.want("one", "two", "last", "one", "two", "last")
		})
	}
	f("gz")
	f("z")
	f("bz2")
}

// TestCompressedFileGrows: a compressed file that is written in parts is read as
// far as possible.
func TestCompressedFileGrows(t *testing.T) {
	scene(t, func(h *harness) {
		decompressing(h, "gz")
		var want []string
		var text strings.Builder
		for _, l := range numbers("some line ", 1, 20000) {
			want = append(want, l)
			text.WriteString(l + "\n")
		}
		all := compressed(t, "gz", text.String())
		h.start()
		for i := 0; i < len(all); i += 5000 {
			h.append("app.log", all[i:min(i+5000, len(all))])
			h.pass(time.Second)
			if i == 20000 {
				h.stop()
				h.start()
			}
		}
		h.want(want...)
		if !strings.Contains(h.node.Logs(), "cannot decompress as gz") {
			t.Errorf("got log %s", h.node.Logs())
		}
	})
}

func TestInitialDelay(t *testing.T) {
	scene(t, func(h *harness) {
		decompressing(h, "gz")
		h.args.Decompression.InitialDelay = 10 * time.Second
		h.append("app.log", compressed(t, "gz", "a\n"))
		h.start()
		h.pass(9 * time.Second)
		h.want()
		h.pass(2 * time.Second)
		h.want("a")
	})
}

// TestRotatedAndCompressed: if a file was renamed and compressed while weir was
// down, the rest is read from the compressed file.
func TestRotatedAndCompressed(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "first line\nsecond line\n")
		h.start()
		h.stop()
		h.append("app.log.1.gz", compressed(t, "gz", "first line\nsecond line\nthird line\n"))
		h.remove("app.log")
		h.append("app.log", "fourth line\n")
		h.start()
		h.want("first line", "second line", "third line", "fourth line")
	})
}

func TestLongLines(t *testing.T) {
	scene(t, func(h *harness) {
		long := strings.Repeat("0123456789", 100<<10) // 1 MiB, four chunks
		h.append("app.log", "a\n"+long)
		h.start()
		h.want("a")
		h.append("app.log", long[:300<<10])
		h.pass(time.Second)
		h.append("app.log", "\nb\n")
		h.pass(time.Second)
		h.want("a", long+long[:300<<10], "b")
	})
}

// TestTooLongLines: too long lines are cut between characters, and nothing is
// lost.
func TestTooLongLines(t *testing.T) {
	scene(t, func(h *harness) {
		long := "x" + strings.Repeat("ü", 9<<20)
		h.append("app.log", long+"\nb\n")
		h.start()
		got := h.sink.lines()
		if len(got) != 3 || len(got[0]) != 16<<20-1 || strings.Join(got[:2], "") != long || got[2] != "b" {
			t.Errorf("got %d lines", len(got))
		}
		h.counts("weir_source_file_cut_lines_total", 1)
	})
}

// TestHole: a writer that does not append continues at its old offset after a
// truncation, which leaves a hole.
func TestHole(t *testing.T) {
	scene(t, func(h *harness) {
		f, err := os.Create(h.path("app.log"))
		h.must(err)
		defer f.Close()
		_, err = f.WriteString("first\nsecond\n")
		h.must(err)
		h.start()
		h.must(f.Truncate(0))
		_, err = f.WriteString("third\n")
		h.must(err)
		h.pass(time.Second)
		h.want("first", "second", "third")
		h.counts("weir_source_file_skipped_hole_bytes_total", 13)
		h.stop()
		_, err = f.WriteString("fourth\n")
		h.must(err)
		h.start()
		h.want("first", "second", "third", "fourth")
	})
}
