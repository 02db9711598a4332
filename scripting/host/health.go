package host

import (
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// healthFunc implements ctx.health.
func healthFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name: "health",
		Doc:  "Sets the health of the node until the next call or until the script is replaced. The web UI, the metrics and `weir components` show it. Errors of hooks are counted independently.",
		Params: []scripting.Param{
			{Name: "state", Kind: scripting.KindString, Doc: `"healthy", "degraded" (healthy, with the message) or "unhealthy".`},
			{Name: "message", Kind: scripting.KindString, Optional: true, Doc: "Why."},
		},
		Uses: []scripting.Use{{
			Lua: `if #batch < 2 then ctx.health("degraded", "half of it is missing") else ctx.health("healthy") end`,
			JS:  `if (batch.length < 2) ctx.health("degraded", "half of it is missing"); else ctx.health("healthy");`, Input: "a 1\n", Output: "a 1\n",
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			message, _ := args[1].(string)
			if len(message) > maxHealthMessage {
				message = message[:maxHealthMessage]
			}
			message = strings.Clone(message)
			shown := component.Health{State: component.Healthy, Message: message, Time: h.Call().Now}
			switch s := args[0].(string); s {
			case "healthy":
			case "degraded":
				shown.Message = "degraded: " + message
			case "unhealthy":
				shown.State = component.Unhealthy
			default:
				return nil, &scripting.ArgError{Func: "health", Param: "state", Msg: `must be "healthy", "degraded" or "unhealthy"`}
			}
			h.Health(shown)
			return nil, nil
		},
	}
}

// maxHealthMessage is the maximum length of a message of ctx.health, in bytes.
const maxHealthMessage = 1000
