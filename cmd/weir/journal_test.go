package main

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/loki/push"
)

// lokiBlock returns a block of loki.write with two lines for each stream.
func lokiBlock(tenant string, streams ...string) journal.Block {
	var raw []byte
	for _, labels := range streams {
		entries := push.AppendEntry(push.AppendEntry(nil, 1, "one", nil), 2, "two", nil)
		raw = append(push.AppendStream(raw, labels, len(entries)), entries...)
	}
	payload := append(binary.AppendUvarint(nil, uint64(len(tenant))), tenant...)
	return journal.Block{Kind: 1, Samples: 2 * len(streams), Payload: append(payload, s2.EncodeSnappy(nil, raw)...)}
}

// TestJournalStatsByComponent: the component that owns a journal determines how
// its blocks are read. Blocks that this component cannot read count as damaged.
func TestJournalStatsByComponent(t *testing.T) {
	good := []journal.Block{lokiBlock("", `{app="a"}`, `{app="b"}`), lokiBlock("one", `{app="a"}`), lokiBlock("two", `{app="a"}`)}
	garbage := journal.Block{Kind: 1, Samples: 3, Payload: []byte("\x00\x05garbage")}
	short := lokiBlock("", `{app="a"}`)
	short.Samples = 5
	later := journal.Block{Kind: 99, Samples: 7, Payload: []byte("of a later weir")}
	f := func(node string, blocks []journal.Block, want string, jsonHas ...string) {
		t.Helper()
		dir := t.TempDir()
		j, err := journal.Open(dir, journal.Options{Shards: 1, Owner: journal.Owner{Node: node}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Append(blocks...); err != nil {
			t.Fatal(err)
		}
		look := func() {
			t.Helper()
			var text, js bytes.Buffer
			if err := journalStats(&text, dir, "text"); err != nil {
				t.Fatal(err)
			}
			if err := journalStats(&js, dir, "json"); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(text.String()) {
				if regexp.MustCompile(`^(component|pending|damaged|problem)`).MatchString(line) {
					got = append(got, strings.TrimRight(regexp.MustCompile(`, [\d.]+[KM]?i?B`).ReplaceAllString(line, ""), "\n"))
				}
			}
			if got := strings.Join(got, "\n"); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", node, got, want)
			}
			for _, want := range jsonHas {
				if !strings.Contains(js.String(), want) {
					t.Errorf("%s: no %s in\n%s", node, want, js.String())
				}
			}
		}
		look() // while the journal is open
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		look()
	}
	f("loki.write.default", good, "component loki.write\npending   8 lines of 4 streams in 3 blocks, for 2 tenants",
		`"component": "loki.write"`, `"pending_samples": 0`, `"pending_lines": 8`, `"pending_streams": 4`, `"pending_tenants": 2`)
	f("m.logs/loki.write.default", good[:1], "component loki.write\npending   4 lines of 2 streams in 1 block")
	f("loki.write.default", []journal.Block{good[0], garbage, short}, "component loki.write\npending   4 lines of 2 streams, 2 damaged blocks in 3 blocks\n"+
		"damaged   1 block cannot be read: a block has 2 lines and should have 5\n"+
		"damaged   1 block cannot be read: cannot decompress a block: s2: corrupt input", `"a block has 2 lines and should have 5": 1`)
	f("loki.write.default", []journal.Block{good[0], later}, "component loki.write\npending   4 lines of 2 streams, 1 block of an unknown kind in 2 blocks", `"unknown_blocks": 1`)
	f("prometheus.remote_write.default", []journal.Block{garbage}, "component prometheus.remote_write\npending   1 damaged block in 1 block\n"+
		"damaged   1 block cannot be read: s2: corrupt input")
	// The owner of the journal is unknown.
	f("", good, "component loki.write\npending   8 lines of 4 streams in 3 blocks, for 2 tenants")
	f("", []journal.Block{later, garbage}, "component unknown\npending   2 blocks of an unknown kind in 2 blocks")
	f("queue.of_a_later_weir.x", []journal.Block{later, good[0]}, "component queue.of_a_later_weir\npending   2 blocks of an unknown kind in 2 blocks")
}

// TestJournalStatsOfADamagedFile: the report names a block whose bytes changed on
// disk.
func TestJournalStatsOfADamagedFile(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{Shards: 1, Owner: journal.Owner{Node: "loki.write.default"}, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(lokiBlock("", `{app="a"}`), lokiBlock("", `{app="b"}`)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 0xff
	if err := os.WriteFile(segments[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := journalStats(&out, dir, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pending   2 lines of 1 stream in 2 blocks", "damaged   " + filepath.Base(segments[0]) + ": block 2: checksum does not match"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
