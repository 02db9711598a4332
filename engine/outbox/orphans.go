package outbox

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

// Root returns the directory of the journals in a storage directory.
func Root(storage string) string { return filepath.Join(storage, "journal") }

// Orphans manages the journals of a storage directory that no node claims. It
// is not safe for concurrent use, but there may be several for one directory.
type Orphans struct {
	Storage string
	Clock   clock.Clock
	Logger  *slog.Logger

	told map[string]bool
}

// Run calls tend a minute after the start, when all nodes have claimed their
// journals, and every hour, until ctx ends.
func (o *Orphans) Run(ctx context.Context) {
	for wait := time.Minute; clock.Sleep(ctx, o.Clock, wait) == nil; wait = time.Hour {
		o.tend()
	}
}

// tend removes journals that exceeded their age limit, and logs the remaining
// ones once each. Their data is sent when their endpoint is configured again.
func (o *Orphans) tend() {
	root := Root(o.Storage)
	removed, err := journal.RemoveExpired(root, o.Clock.Now())
	for _, j := range removed {
		o.Logger.Warn("removed the journal of an endpoint that is not configured any more: it passed its age limit",
			"path", j.Dir, "url", j.URL, "node", j.Node, "bytes", j.Bytes)
	}
	if err != nil {
		o.Logger.Error("cannot remove expired journals", "err", err)
	}
	infos, err := journal.List(root)
	if err != nil {
		o.Logger.Error("cannot list the journals", "err", err)
		return
	}
	for _, j := range infos {
		if j.InUse || j.Bytes == 0 || o.told[j.Dir] {
			continue
		}
		if o.told == nil {
			o.told = map[string]bool{}
		}
		o.told[j.Dir] = true
		o.Logger.Warn("there is a journal of an endpoint that is not configured: it is kept until its age limit",
			"path", j.Dir, "endpoint", j.Endpoint, "url", j.URL, "node", j.Node, "bytes", j.Bytes)
	}
}
