package file_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// await waits in the time of the bubble, with which the duration of calls to
// receivers is measured.
func await(d time.Duration) { <-time.After(d) }

// TestBlockingReceiver: changes of the file are detected while a receiver blocks.
func TestBlockingReceiver(t *testing.T) {
	scene(t, func(h *harness) {
		h.sink.block = true
		h.append("app.log", "a\n")
		h.start()
		for i, line := range []string{"b\n", "c\n", "d\n"} {
			h.append("app.log", line)
			h.remove("app.log")
			h.append("app.log", fmt.Sprintf("%d\n", i))
			await(time.Minute)
			h.pass(10 * time.Second)
		}
		h.sink.set(func() { h.sink.block = false })
		await(2 * time.Minute)
		h.pass(20 * time.Second)
		h.want("a", "b", "0", "c", "1", "d", "2")
	})
}

// TestRemovedFileIsClosed: a removed file is closed, because an open handle keeps
// its disk space in use.
func TestRemovedFileIsClosed(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "a\n")
		h.start()
		h.remove("app.log")
		h.pass(4 * time.Second)
		h.counts("weir_source_file_files", 1)
		h.pass(3 * time.Second)
		h.counts("weir_source_file_files", 0)
		h.append("app.log", "b\n")
		h.pass(time.Second)
		h.want("a", "b")
	})
}

// TestManyCompressedFiles: there are fewer decompressors than files.
func TestManyCompressedFiles(t *testing.T) {
	scene(t, func(h *harness) {
		decompressing(h, "gz")
		var names, want []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("%02d.gz", i))
			want = append(want, h.path(names[i])+" "+names[i])
			h.append(names[i], compressed(t, "gz", names[i]+"\n"))
		}
		h.follow(names...)
		h.start()
		h.pass(10 * time.Second)
		h.wantLabelled("filename", want...)
	})
}

// TestTruncatedAndGone: bytes that were known and cannot be found any more are
// counted.
func TestTruncatedAndGone(t *testing.T) {
	scene(t, func(h *harness) {
		h.append("app.log", "aaaa\n")
		h.start()
		h.sink.set(func() { h.sink.hold = true })
		h.append("app.log", "bbbb\n")
		h.pass(time.Second)
		h.stop()
		h.remove("app.log")
		h.append("app.log", "cccc\n")
		h.start()
		h.want("aaaa", "bbbb", "cccc")
		h.counts("weir_source_file_lost_bytes_total", 5)
	})
}

// relay is a node between the source and a sink.
type relay struct{ *flow.Sender }

func (r relay) ConsumeLogs(ctx context.Context, b *batch.Logs) error { return r.SendLogs(ctx, b) }

// TestReceiverLeavesFarther: if a downstream node refuses lines and then leaves
// the graph, they are sent to its replacement, even though the source's own
// receiver stays.
func TestReceiverLeavesFarther(t *testing.T) {
	scene(t, func(h *harness) {
		between, last := relay{flow.NewSender()}, h.sink
		between.To(flow.NewOutput(nil, []*flow.Receiver{last.to}))
		h.sink = newSink("between")
		h.sink.to.Set(between)
		h.args.ForwardTo = []*flow.Receiver{h.sink.to}
		last.refuse = errors.New("full")
		h.append("app.log", "a\n")
		h.start()
		h.pass(time.Second)
		next := newSink("next")
		between.To(flow.NewOutput(nil, []*flow.Receiver{next.to}))
		last.to.Stop()
		h.append("app.log", "b\n")
		h.pass(20 * time.Second)
		h.sink = next
		h.want("a", "b")
	})
}
