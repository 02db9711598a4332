package node

import (
	"sync"

	"github.com/weir-run/weir/engine/component"
)

// aspect is a part of a node's health, worst first.
type aspect uint8

const (
	aspectSetup  aspect = iota // whether batches are admitted
	aspectListen               // whether its own address is served
	aspectState                // whether persistent state is on disk
	aspectSink                 // whether a sink delivers
	aspectErrors               // of hooks
	aspectOwn                  // as reported by the script with ctx.health
	aspects
)

// healths combines the aspects of a node into one health: the first that is not
// healthy, or else the first with a message.
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
	h.report(shown) // under the lock, so that reports are in order
}
