package write

import (
	"time"

	"github.com/weir-run/weir/engine/outbox"
)

// debugInfo is the state of an endpoint that the web page shows.
type debugInfo struct {
	Endpoint      string           `json:"endpoint"`
	URL           string           `json:"url"`
	Journal       string           `json:"journal"`
	Shards        int              `json:"shards"` // shards for lines without their own tenant
	PendingBlocks int64            `json:"pending_blocks"`
	PendingLines  int64            `json:"pending_lines"`
	JournalBytes  int64            `json:"journal_bytes"`
	OldestAge     string           `json:"oldest_age"`
	Sent          int64            `json:"lines_sent"`
	Dropped       map[string]int64 `json:"lines_dropped"`
	LastError     string           `json:"last_error,omitempty"`
	LastErrorTime time.Time        `json:"last_error_time,omitzero"`
}

// DebugInfo returns the state of each endpoint.
func (c *Component) DebugInfo() any {
	var infos []debugInfo
	for _, e := range c.endpoints.Current() {
		infos = append(infos, e.debug())
	}
	return map[string]any{"endpoints": infos}
}

func (e *endpoint) debug() debugInfo {
	d := e.Debug()
	in := debugInfo{
		Endpoint: e.Label(), URL: outbox.ShownURL(e.settings.Load().args.URL), Journal: d.Journal,
		PendingBlocks: d.Stats.Journal.Blocks, PendingLines: d.Waiting, JournalBytes: d.Stats.Journal.Bytes, OldestAge: d.OldestAge,
		Sent: d.Sent, Dropped: d.Lost, LastError: d.LastError, LastErrorTime: d.LastErrorTime,
	}
	if d.Journal != "" {
		in.Shards = len(e.shards.gatherers)
	}
	return in
}
