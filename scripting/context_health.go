package scripting

import (
	"strings"

	"github.com/weir-run/weir/engine/component"
)

// healthFunc is ctx.health.
func healthFunc(h *hookHost) Function {
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
			shown := component.Health{State: component.Healthy, Message: message, Time: h.call().now}
			switch s := args[0].(string); s {
			case "healthy":
			case "degraded":
				shown.Message = "degraded: " + message
			case "unhealthy":
				shown.State = component.Unhealthy
			default:
				return nil, &ArgError{Func: "health", Param: "state", Msg: `must be "healthy", "degraded" or "unhealthy"`}
			}
			h.health(shown)
			return nil, nil
		},
	}
}

// maxHealthMessage is how long a message of ctx.health may be, in bytes.
const maxHealthMessage = 1000
