package journal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// TestHang: while the file system of the journal does not respond, the node is
// unhealthy and can be stopped. Afterwards it continues, and nothing is lost.
func TestHang(t *testing.T) {
	filestest.Patience(t, 100*time.Millisecond)
	l := newHarness(t)
	w := l.create("system.journal")
	l.write(w, 1, 2)
	l.want(l.run(2, ""), 1, 2)
	_, release := filestest.Hang(t, l.dir)
	unhealthy := func() bool {
		h := l.node.Health()
		return h.State == component.Unhealthy && strings.Contains(h.Message, "has not returned since")
	}
	stop := l.node.Run(t, l.build(l.arguments("", flowtest.NewSink("unused").Receiver())))
	l.node.Wait(t, unhealthy)
	filestest.Within(t, "the stop of a node whose file system hangs", stop)
	sink := flowtest.NewSink("sink")
	stop = l.node.Run(t, l.build(l.arguments("", sink.Receiver())))
	defer stop()
	l.node.Wait(t, unhealthy)
	l.write(w, 3, 4)
	release()
	l.want(l.wait(sink, 2), 3, 4)
	if n := l.node.Stats.DroppedLines()["deleted"]; n > 0 {
		t.Errorf("%d entries were taken for deleted", n)
	}
}

// TestHangWhileFollowing: open files are read on afterwards.
func TestHangWhileFollowing(t *testing.T) {
	filestest.Patience(t, 100*time.Millisecond)
	l := newHarness(t)
	w := l.create("system.journal")
	l.write(w, 1, 2)
	sink := flowtest.NewSink("sink")
	defer l.node.Run(t, l.build(l.arguments("", sink.Receiver())))()
	l.wait(sink, 2)
	_, release := filestest.Hang(t, l.dir)
	l.node.Wait(t, func() bool { return strings.Contains(l.node.Health().Message, "has not returned since") })
	release()
	l.write(w, 3, 4)
	l.want(l.wait(sink, 4), 1, 4)
	l.node.Wait(t, func() bool { return l.node.Health().State == component.Healthy })
}
