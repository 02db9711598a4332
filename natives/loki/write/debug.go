package write

import (
	"time"

	"github.com/weir-run/weir/engine/journal"
)

// debugInfo is what the page shows of an endpoint.
type debugInfo struct {
	Endpoint      string           `json:"endpoint"`
	URL           string           `json:"url"`
	Journal       string           `json:"journal"`
	Lanes         int              `json:"lanes"` // for lines without a tenant of their own
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
	args := e.settings.Load().args
	dropped, st := e.dropped()
	in := debugInfo{
		Endpoint: args.label(), URL: journal.PublicURL(args.URL),
		PendingBlocks: st.Blocks, PendingLines: st.Samples, JournalBytes: st.Bytes, OldestAge: "0s",
		Sent: e.stats.sent.Load(), Dropped: dropped,
	}
	if !st.Oldest.IsZero() {
		in.OldestAge = e.clock.Now().Sub(st.Oldest).Round(time.Second).String()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened != nil {
		in.Journal, in.Lanes = e.opened.Dir(), shards(e.opened.Lanes())
	}
	if e.lastErr != nil {
		in.LastError, in.LastErrorTime = e.lastErr.Error(), e.lastTime
	} else if e.openErr != nil {
		in.LastError = e.openErr.Error()
	}
	return in
}
