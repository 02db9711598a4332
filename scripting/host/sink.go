package host

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/scripting"
)

// maxReason is the maximum length of a reason, in bytes.
const maxReason = 1000

// deliveryNow returns the delivery of the current call.
func (h *Binding) deliveryNow(name string) (*Delivery, error) {
	k := h.Call()
	if k == nil || k.Delivery == nil {
		return nil, &scripting.ArgError{Func: "ctx." + name, Msg: "only the hook send of a weir.sink can use it"}
	}
	return k.Delivery, nil
}

func reasonOf(v scripting.Value) string {
	s, _ := v.(string)
	return strings.Clone(s[:min(len(s), maxReason)]) // s may be part of a long text
}

// retryFunc implements ctx.retry.
func retryFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name: "retry",
		Doc: "Marks the batch as not delivered and schedules another attempt. The delay grows with each attempt unless the script sets it. Attempts continue until the journal's max_age. " +
			"It does not end the hook and takes effect even if the hook fails afterwards: call it as return ctx.retry(…). Rejected records are not sent again.",
		Params: []scripting.Param{{Name: "how", Kind: scripting.KindMap, Optional: true, Doc: "The delay and the reason.", Fields: []scripting.Param{
			{Name: "after", Kind: scripting.KindString, Optional: true, Or: []scripting.Param{{Kind: scripting.KindNumber}}, Doc: `The delay, such as "5s", or a number of seconds; between 100ms and 10m.`},
			{Name: "reason", Kind: scripting.KindString, Optional: true, Doc: "The reason, for the log and the health of the node."},
		}}},
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.sink {
  needs = { http = { "https://hook.example/*" } },
  send = function(batch, ctx)
    local answer, err = ctx.http.post("https://hook.example/v1", batch:text())
    if not answer then return ctx.retry { reason = err } end
    if answer.status == 429 then return ctx.retry { after = answer.headers["retry-after"] .. "s", reason = "too many requests" } end
  end,
}`,
			JS: `import { defineSink } from "weir";

export default defineSink({
  needs: { http: ["https://hook.example/*"] },
  async send(batch, ctx) {
    const answer = await ctx.http.post("https://hook.example/v1", batch.text());
    if (answer.status === 429) return ctx.retry({ after: answer.headers["retry-after"] + "s", reason: "too many requests" });
  },
});`,
			Test: `weir.test.http { ["POST https://hook.example/v1"] = { status = 429, headers = { ["Retry-After"] = "7" } } }
t:metrics("a 1")`,
			TestJS: `http({ "POST https://hook.example/v1": { status: 429, headers: { "Retry-After": "7" } } });
t.metrics("a 1");`,
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			s, err := h.deliveryNow("retry")
			if err != nil {
				return nil, err
			}
			how, _ := args[0].(*scripting.Map)
			if how == nil {
				how = scripting.NewMap()
			}
			after, _ := how.Get("after")
			d, err := afterOf(after)
			if err != nil {
				return nil, err
			}
			reason, _ := how.Get("reason")
			s.Retry, s.After, s.Reason = true, d, reasonOf(reason)
			return nil, nil
		},
	}
}

func afterOf(v scripting.Value) (d time.Duration, err error) {
	switch x := v.(type) {
	case string:
		if d, err = time.ParseDuration(x); err != nil {
			return 0, &scripting.ArgError{Func: "retry", Param: "how", Msg: fmt.Sprintf("has the after %q: it must be a duration such as \"5s\", or a number of seconds", x)}
		}
	case float64:
		d = time.Duration(min(max(x, 0), 1e6) * float64(time.Second))
	}
	if d < 0 {
		return 0, &scripting.ArgError{Func: "retry", Param: "how", Msg: "has a negative after"}
	}
	return d, nil
}

// rejectFunc implements ctx.reject.
func rejectFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name: "reject",
		Doc: "Gives up the batch or one of its records: it is counted and not sent again. The node is unhealthy until the next successful delivery. " +
			"It does not end the hook and takes effect even if the hook fails afterwards.",
		Params: []scripting.Param{
			{Name: "what", Kind: scripting.KindAny, Doc: "A record of the batch, or the reason if the whole batch is rejected."},
			{Name: "reason", Kind: scripting.KindString, Optional: true, Doc: "The reason for a record, for the log and the health of the node."},
		},
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.sink {
  needs = { http = { "https://hook.example/*" } },
  send = function(batch, ctx)
    for m in batch:records() do
      if m.labels.host == nil then ctx.reject(m, "no label host") end
    end
    local answer = assert(ctx.http.post("https://hook.example/v1", batch:text()))
    if answer.status == 400 then return ctx.reject(answer.body) end
  end,
}`,
			JS: `import { defineSink } from "weir";

export default defineSink({
  needs: { http: ["https://hook.example/*"] },
  async send(batch, ctx) {
    for (const m of batch) {
      if (m.labels.host === undefined) ctx.reject(m, "no label host");
    }
    const answer = await ctx.http.post("https://hook.example/v1", batch.text());
    if (answer.status === 400) return ctx.reject(answer.body);
  },
});`,
			Test: `weir.test.http { ["POST https://hook.example/v1"] = { status = 400, body = "bad" } }
t:metrics("a 1")`,
			TestJS: `http({ "POST https://hook.example/v1": { status: 400, body: "bad" } });
t.metrics("a 1");`,
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			s, err := h.deliveryNow("reject")
			if err != nil {
				return nil, err
			}
			switch what := args[0].(type) {
			case scripting.Row:
				if s.Rejected == nil {
					s.Rejected = map[int]string{}
				}
				s.Rejected[int(what)] = "rejected by the script: " + reasonOf(args[1])
			case string:
				s.RejectAll = "rejected by the script: " + reasonOf(what)
			default:
				return nil, &scripting.ArgError{Func: "reject", Param: "what", Msg: "must be a record of the batch, or the reason, not a " + scripting.TypeName(what)}
			}
			return nil, nil
		},
	}
}

// attemptFunc implements ctx.attempt.
func attemptFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name:   "attempt",
		Doc:    "Returns the number of the current attempt to send these records. After weir was killed, counting starts at 1 again.",
		Result: scripting.Result{Kind: scripting.KindInt, Doc: "The number, starting at 1."},
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.sink {
  send = function(batch, ctx)
    if ctx.attempt() > 3 then ctx.log.warn("it takes long", { attempt = ctx.attempt() }) end
  end,
}`,
			JS: `import { defineSink } from "weir";

export default defineSink({
  send(batch, ctx) {
    if (ctx.attempt() > 3) ctx.log.warn("it takes long", { attempt: ctx.attempt() });
  },
});`,
			Test:   `t:metrics("a 1")`,
			TestJS: `t.metrics("a 1");`,
		}},
		Fn: func([]scripting.Value) (scripting.Value, error) {
			s, err := h.deliveryNow("attempt")
			if err != nil {
				return nil, err
			}
			return int64(s.Attempt), nil
		},
	}
}

// batchIDFunc implements ctx.batch_id.
func batchIDFunc(h *Binding) scripting.Function {
	return scripting.Function{
		Name: "batch_id",
		Doc: "Returns an ID of the batch. It is unique and stays the same for all attempts to send these records, so receivers can detect duplicates, for example with an Idempotency-Key header. " +
			"If weir splits a batch after an error of the script, each part has its own ID. After weir was killed, records may be sent again in a different batch with a different ID.",
		Result: scripting.Result{Kind: scripting.KindString, Doc: "32 hexadecimal digits."},
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.sink {
  needs = { http = { "https://hook.example/*" } },
  send = function(batch, ctx)
    assert(ctx.http.post("https://hook.example/v1", batch:text(), { headers = { ["Idempotency-Key"] = ctx.batch_id() } }))
  end,
}`,
			JS: `import { defineSink } from "weir";

export default defineSink({
  needs: { http: ["https://hook.example/*"] },
  async send(batch, ctx) {
    await ctx.http.post("https://hook.example/v1", batch.text(), { headers: { "Idempotency-Key": ctx.batchId() } });
  },
});`,
			Test: `weir.test.http { ["POST https://hook.example/v1"] = "" }
t:metrics("a 1")`,
			TestJS: `http({ "POST https://hook.example/v1": "" });
t.metrics("a 1");`,
		}},
		Fn: func([]scripting.Value) (scripting.Value, error) {
			s, err := h.deliveryNow("batch_id")
			if err != nil {
				return nil, err
			}
			return s.ID, nil
		},
	}
}
