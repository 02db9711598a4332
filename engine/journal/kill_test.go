package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

func killOptions() journal.Options {
	return journal.Options{Shards: 4, SegmentSize: 256 << 10, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)}
}

// writeForever is the process that TestKill kills. Every shard appends blocks,
// prints to stdout when they are accepted, and acknowledges some.
func writeForever(dir string) {
	j, err := journal.Open(dir, killOptions())
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	go j.Run(context.Background())
	var mu sync.Mutex
	var wg sync.WaitGroup
	for shard := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := fmt.Sprintf("%d:%d:%s", shard, i, strings.Repeat("x", 1+i%5000))
				b := []journal.Block{{Shard: shard, Samples: 1, Payload: []byte(text)}}
				if err := j.Append(b...); err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Printf("put %d %d\n", shard, i)
				mu.Unlock()
			}
		})
		if shard > 1 {
			continue // two shards deliver, two do not
		}
		wg.Go(func() {
			for {
				b, _ := j.Next(context.Background(), shard, nil)
				mu.Lock()
				fmt.Printf("got %s\n", b.Payload[:strings.LastIndexByte(string(b.Payload), ':')])
				mu.Unlock()
				j.Ack(b)
			}
		})
	}
	wg.Wait()
}

// TestKill kills a process that writes at full speed, several times on one
// journal: every block that it reported as accepted is delivered, in order, by
// it or by the next process.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	for range 4 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WEIR_TEST_JOURNAL_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var accepted, delivered [4]int // how many
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var shard, i int
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "put "):
				if _, err := fmt.Sscanf(line, "put %d %d", &shard, &i); err == nil {
					accepted[shard] = i + 1
				}
			case strings.HasPrefix(line, "got "):
				if _, err := fmt.Sscanf(line, "got %d:%d", &shard, &i); err == nil {
					delivered[shard] = i + 1
				}
			default:
				t.Fatal(line)
			}
			if n == 8000 {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()

		j, err := journal.Open(dir, killOptions())
		if err != nil {
			t.Fatal(err)
		}
		for shard := range 4 {
			next := 0
			for _, p := range drain(t, j, shard) {
				var l, i int
				if _, err := fmt.Sscanf(p, "%d:%d:", &l, &i); err != nil || l != shard {
					t.Fatalf("shard %d has %.20q", shard, p)
				}
				// A missing block was delivered, and its segment removed.
				if i != next && (i < next || i > delivered[shard]) {
					t.Fatalf("shard %d: block %d after %d, delivered were %d", shard, i, next-1, delivered[shard])
				}
				next = i + 1
			}
			if next = max(next, delivered[shard]); next < accepted[shard] {
				t.Errorf("shard %d: %d blocks were accepted, %d arrived", shard, accepted[shard], next)
			}
		}
		if st := j.Stats(); len(st.DroppedBlocks) > 0 || st.Blocks > 0 {
			t.Errorf("got %+v", st)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
