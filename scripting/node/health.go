package node

import (
	"sync"

	"github.com/weir-run/weir/engine/component"
)

// aspect is something that a node's health consists of, the worst first.
type aspect uint8

const (
	aspectSetup  aspect = iota // whether batches are let in
	aspectListen               // whether the address of its own is served
	aspectState                // whether what is persistent is on disk
	aspectSink                 // whether a sink delivers
	aspectErrors               // of hooks
	aspectOwn                  // what the script says with ctx.health
	aspects
)

// healths makes one health of a node's aspects: the first that is not healthy,
// else the first with something to say.
type healths struct {
	report func(component.Health)

	mu sync.Mutex
	of [aspects]component.Health
}

// set reports one aspect.
func (h *healths) set(a aspect, now component.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[a] = now
	shown := now
	for i := len(h.of) - 1; i >= 0; i-- {
		if x := h.of[i]; x.State == component.Healthy && x.Message != "" {
			shown = x
		}
	}
	for i := len(h.of) - 1; i >= 0; i-- {
		if x := h.of[i]; x.State > component.Healthy {
			shown = x
		}
	}
	h.report(shown) // under the lock, so that the last report is the last health
}
