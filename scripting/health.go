package scripting

import (
	"strings"
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

// healthFunc is ctx.health.
func healthFunc(w *worker) Function {
	return Function{
		Name: "health",
		Doc:  "Says how the node is, until it is called again or the script is replaced: the page, the metrics and `weir components` show it. Errors of hooks count besides.",
		Params: []Param{
			{Name: "state", Kind: KindString, Doc: `"healthy", "degraded" (healthy, with the message) or "unhealthy".`},
			{Name: "message", Kind: KindString, Optional: true, Doc: "Why."},
		},
		Uses: []Use{{
			Lua: `if #batch < 2 then ctx.health("degraded", "half of it is missing") else ctx.health("healthy") end`,
			JS:  `if (batch.length < 2) ctx.health("degraded", "half of it is missing"); else ctx.health("healthy");`, Input: "a 1\n", Output: "a 1\n",
		}},
		Fn: func(args []Value) (Value, error) {
			message, _ := args[1].(string)
			if len(message) > maxHealthMessage {
				message = message[:maxHealthMessage]
			}
			message = strings.Clone(message)
			h := component.Health{State: component.Healthy, Message: message, Time: w.call.now}
			switch s := args[0].(string); s {
			case "healthy":
			case "degraded":
				h.Message = "degraded: " + message
			case "unhealthy":
				h.State = component.Unhealthy
			default:
				return nil, &ArgError{Func: "health", Param: "state", Msg: `must be "healthy", "degraded" or "unhealthy"`}
			}
			w.call.c.health.set(aspectOwn, h)
			return nil, nil
		},
	}
}

// maxHealthMessage is how long a message of ctx.health may be, in bytes.
const maxHealthMessage = 1000
