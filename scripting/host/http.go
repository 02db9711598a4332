package host

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
)

// maxRedirects is the default for the maximum number of redirects of a request.
const maxRedirects = 5

// httpTable implements ctx.http.
func httpTable(h *Binding, o *Access) *scripting.Module {
	options := requestOptions()
	target := scripting.Param{Name: "url", Kind: scripting.KindString, Doc: "The URL. script.allow.http must grant it and the targets of its redirects."}
	result := scripting.Result{Kind: scripting.KindObject, Type: responseType, Doc: "The response, whatever its status.", Fails: true}
	call := func(method, url string, body scripting.Value, opts *scripting.Map) (scripting.Value, error) {
		return o.request(h, method, url, body, opts)
	}
	optional := scripting.Param{Name: "options", Kind: scripting.KindMap, Fields: options, Optional: true, Doc: "How."}
	return &scripting.Module{
		Name: "http",
		Doc: "Sends HTTP requests. Connections are kept open for later requests. An address that is reachable only from inside (loopback, private networks) needs a pattern that names the host; " +
			"a link-local address or a cloud metadata address needs a pattern that names the address. A call blocks the hook and the source of the batch for at most script.limits.wait.",
		Types: []*scripting.ObjectType{responseType},
		Funcs: []scripting.Function{
			{
				Name: "get", Doc: "Sends a GET request.", Params: []scripting.Param{target, optional}, Result: result, Waits: true,
				Uses: []scripting.Use{{
					Lua: `local weir = require "weir"
return weir.transform {
  needs = { http = { "https://geo.internal/*" } },
  metrics = function(batch, ctx)
    local answer, err = ctx.http.get("https://geo.internal/v1/region", { timeout = "2s" })
    if not answer or answer.status ~= 200 then return ctx.log.warn("no region", { err = err }) end
    batch:set_label("region", answer.body)
  end,
}`,
					JS: `import { defineTransform } from "weir";

export default defineTransform({
  needs: { http: ["https://geo.internal/*"] },
  async metrics(batch, ctx) {
    const answer = await ctx.http.get("https://geo.internal/v1/region", { timeout: "2s" });
    if (answer.status !== 200) return ctx.log.warn("no region", { status: answer.status });
    batch.setLabel("region", answer.body);
  },
});`,
					TestJS: `http({ "https://geo.internal/v1/region": "eu" });
expect(t.metrics("a 1").labelValues("region")).toEqual(["eu"]);`,
					Test: `weir.test.http { ["https://geo.internal/v1/region"] = "eu" }
assert.same({ "eu" }, t:metrics("a 1"):label_values("region"))`,
				}},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					opts, _ := a[1].(*scripting.Map)
					return call("GET", a[0].(string), nil, opts)
				},
			},
			{
				Name: "post", Doc: "Sends a POST request.",
				Params: []scripting.Param{target, {Name: "body", Kind: scripting.KindString, Optional: true, Doc: "The body; alternatively, use the option json."}, optional},
				Result: result, Waits: true,
				Uses: []scripting.Use{{
					Lua: `local weir = require "weir"
return weir.transform {
  needs = { http = { "https://geo.internal/*" } },
  metrics = function(batch, ctx)
    local answer = assert(ctx.http.post("https://geo.internal/v1/seen", batch[1].name, { headers = { ["Content-Type"] = "text/plain" } }))
    batch:set_label("seen", answer.body)
  end,
}`,
					JS: `import { defineTransform } from "weir";

export default defineTransform({
  needs: { http: ["https://geo.internal/*"] },
  async metrics(batch, ctx) {
    const answer = await ctx.http.post("https://geo.internal/v1/seen", batch[0].name, { headers: { "Content-Type": "text/plain" } });
    batch.setLabel("seen", answer.body);
  },
});`,
					TestJS: `http({ "POST https://geo.internal/v1/seen": (asked) => "got " + asked.body });
expect(t.metrics("a 1").labelValues("seen")).toEqual(["got a"]);`,
					Test: `weir.test.http { ["POST https://geo.internal/v1/seen"] = function(asked) return "got " .. asked.body end }
assert.same({ "got a" }, t:metrics("a 1"):label_values("seen"))`,
				}},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					opts, _ := a[2].(*scripting.Map)
					return call("POST", a[0].(string), a[1], opts)
				},
			},
			{
				Name: "request", Doc: "Sends a request with any method.",
				Params: []scripting.Param{{Name: "request", Kind: scripting.KindMap, Doc: "The request.", Fields: append([]scripting.Param{
					{Name: "method", Kind: scripting.KindString, Optional: true, Doc: "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS. Default: GET."},
					target,
					{Name: "body", Kind: scripting.KindString, Optional: true, Doc: "The body to send."},
				}, options...)}},
				Result: result, Waits: true,
				Uses: []scripting.Use{{
					Lua: `local weir = require "weir"
return weir.transform {
  needs = { http = { "https://geo.internal/*" } },
  metrics = function(batch, ctx)
    local answer = assert(ctx.http.request {
      method = "PUT", url = "https://geo.internal/v1/seen", json = { region = "eu" }, bearer = ctx.secret("s3cret"),
    })
    batch:set_label("status", tostring(answer.status))
  end,
}`,
					JS: `import { defineTransform } from "weir";

export default defineTransform({
  needs: { http: ["https://geo.internal/*"] },
  async metrics(batch, ctx) {
    const answer = await ctx.http.request({
      method: "PUT", url: "https://geo.internal/v1/seen", json: { region: "eu" }, bearer: ctx.secret("s3cret"),
    });
    batch.setLabel("status", answer.status);
  },
});`,
					TestJS: `const seen = http({ "PUT https://geo.internal/v1/seen": { status: 204 } });
expect(t.metrics("a 1").labelValues("status")).toEqual(["204"]);
expect(seen.calls()[0].body).toBe('{"region":"eu"}');
expect(seen.calls()[0].headers.Authorization).toBe("Bearer s3cret");`,
					Test: `local http = weir.test.http { ["PUT https://geo.internal/v1/seen"] = { status = 204 } }
assert.same({ "204" }, t:metrics("a 1"):label_values("status"))
assert.equals('{"region":"eu"}', http:calls()[1].body)
assert.equals("Bearer s3cret", http:calls()[1].headers.Authorization)`,
				}},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					opts := a[0].(*scripting.Map)
					method, _ := option[string](opts, "method")
					url, _ := option[string](opts, "url")
					body, _ := opts.Get("body")
					return call(method, url, body, opts)
				},
			},
		},
	}
}

// requestOptions returns the options of all requests.
func requestOptions() []scripting.Param {
	secret := "A text or a secret."
	return []scripting.Param{
		{Name: "headers", Kind: scripting.KindMap, Optional: true, Of: &scripting.Param{Kind: scripting.KindAny}, Doc: "Headers by name: strings or secrets, or lists of them that are joined, such as { \"Token \", ctx.args.token }."},
		{Name: "query", Kind: scripting.KindMap, Optional: true, Of: &scripting.Param{Kind: scripting.KindAny}, Doc: "Query parameters to add to the URL: strings, numbers or secrets."},
		{Name: "json", Kind: scripting.KindAny, Optional: true, Doc: "A value to send as JSON."},
		{Name: "bearer", Kind: scripting.KindAny, Optional: true, Doc: "A token for the Authorization header. " + secret},
		{Name: "basic", Kind: scripting.KindMap, Optional: true, Doc: "A user for the Authorization header.", Fields: []scripting.Param{
			{Name: "username", Kind: scripting.KindAny, Doc: secret},
			{Name: "password", Kind: scripting.KindAny, Doc: secret},
		}},
		timeoutParam(),
		maxBytesParam(),
		{Name: "redirects", Kind: scripting.KindInt, Optional: true, Doc: fmt.Sprintf("The number of redirects to follow, 0 to 10. Default: %d. Headers are forwarded to the same host only.", maxRedirects)},
	}
}

// response is a response in scripts.
type response struct {
	*egress.Response
	took   time.Duration
	body   string
	decode *scripting.Function // of JSON; nil if there is no such module
}

// responseType is the type of the results of ctx.http.
var responseType = &scripting.ObjectType{
	Name: "http.Response",
	Doc:  "A response.",
	Fields: []scripting.Param{
		{Name: "status", Kind: scripting.KindInt, Doc: "The status code, such as 200."},
		{Name: "headers", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The headers by name, in lower case. Repeated headers are joined with commas."},
		{Name: "body", Kind: scripting.KindString, Doc: "The body, decompressed."},
		{Name: "url", Kind: scripting.KindString, Doc: "The URL that sent the response, after redirects, without its query."},
		{Name: "seconds", Kind: scripting.KindNumber, Doc: "The duration, including redirects and the body."},
	},
	Read: func(data any, field string) scripting.Value {
		r := data.(*response)
		switch field {
		case "status":
			return int64(r.Status)
		case "body":
			return r.body
		case "url":
			return r.URL
		case "seconds":
			return r.took.Seconds()
		}
		return HeaderMap(r.Header)
	},
	Methods: []scripting.Function{{
		Name: "json", Doc: "Decodes the body as JSON.",
		Result: scripting.Result{Kind: scripting.KindAny, Doc: "The value.", Fails: true},
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.transform {
  needs = { http = { "https://geo.internal/*" } },
  metrics = function(batch, ctx)
    local regions = assert(assert(ctx.http.get("https://geo.internal/v1/regions")):json())
    batch:map_label("host", function(host) return regions[host] or host end)
  end,
}`,
			JS: `import { defineTransform } from "weir";

export default defineTransform({
  needs: { http: ["https://geo.internal/*"] },
  async metrics(batch, ctx) {
    const regions = (await ctx.http.get("https://geo.internal/v1/regions")).json();
    batch.mapLabel("host", (host) => regions[host] ?? host);
  },
});`,
			TestJS: `http({ "https://geo.internal/v1/regions": '{"h1":"eu"}' });
expect(t.metrics('a{host="h1"} 1').labelValues("host")).toEqual(["eu"]);`,
			Test: `weir.test.http { ["https://geo.internal/v1/regions"] = [[{"h1":"eu"}]] }
assert.same({ "eu" }, t:metrics([[a{host="h1"} 1]]):label_values("host"))`,
		}},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			r := a[0].(*response)
			if r.decode == nil {
				return nil, errors.New("cannot decode JSON: there is no module json")
			}
			return r.decode.Call(nil, []scripting.Value{r.body})
		},
	}},
	String: func(data any) string { return fmt.Sprintf("http.Response(%d)", data.(*response).Status) },
}

// request sends a request for a script.
func (o *Access) request(h *Binding, method, to string, body scripting.Value, opts *scripting.Map) (scripting.Value, error) {
	req, err := o.newRequest(method, to, body, opts)
	if err != nil {
		return nil, err
	}
	return o.waitFor(h, opts, func(ctx context.Context) (scripting.Value, error) {
		started := h.Call().Clock.Now()
		resp, err := o.http.Do(ctx, req)
		o.answered(h.Call(), func() component.Answer { return httpAnswer(req, resp, err) })
		took := h.Call().Clock.Now().Sub(started)
		if o.outcomes != nil {
			status := 0
			if err == nil {
				status = resp.Status
			}
			o.outcomes.request(status, err, took)
		}
		if err != nil {
			return nil, err
		}
		if h.Call().failsBy(resp.Status) {
			h.Call().OutsideFailed = true
		}
		out := &response{Response: resp, took: took, body: string(resp.Body), decode: o.JSON("decode")}
		resp.Body = nil
		return &scripting.Object{Type: responseType, Data: out}, nil
	})
}

func (o *Access) newRequest(method, to string, body scripting.Value, opts *scripting.Map) (*egress.Request, error) {
	req := &egress.Request{Method: method, URL: to, Redirects: maxRedirects}
	var err error
	if req.MaxBody, err = maxBytes(opts); err != nil {
		return nil, err
	}
	if n, ok := option[int64](opts, "redirects"); ok {
		if n < 0 || n > 10 {
			return nil, fmt.Errorf("cannot use redirects = %d: it must be between 0 and 10", n)
		}
		req.Redirects = int(n)
	}
	if s, ok := body.(string); ok {
		req.Body = []byte(s)
	}
	if err := o.addJSON(req, opts); err != nil {
		return nil, err
	}
	if err := addQuery(req, opts); err != nil {
		return nil, err
	}
	if err := addHeaders(req, opts); err != nil {
		return nil, err
	}
	return req, addAuth(req, opts)
}

func (o *Access) addJSON(req *egress.Request, opts *scripting.Map) error {
	if opts == nil {
		return nil
	}
	v, ok := opts.Get("json")
	if !ok || v == nil {
		return nil
	}
	if req.Body != nil {
		return errors.New("cannot send both body and json")
	}
	encode := o.JSON("encode")
	if encode == nil {
		return errors.New("cannot send json: there is no module json")
	}
	text, err := encode.Call(nil, []scripting.Value{v})
	if err != nil {
		return err
	}
	req.Body = []byte(text.(string))
	req.Header = append(req.Header, egress.Header{Name: "Content-Type", Value: "application/json"})
	return nil
}

func addQuery(req *egress.Request, opts *scripting.Map) error {
	query, ok := option[*scripting.Map](opts, "query")
	if !ok {
		return nil
	}
	values, size := url.Values{}, 0
	for _, k := range query.Keys() {
		v, _ := query.Get(k)
		s, ok := revealText(v)
		switch v := v.(type) {
		case int64:
			s, ok = strconv.FormatInt(v, 10), true
		case float64:
			s, ok = strconv.FormatFloat(v, 'g', -1, 64), true
		}
		if !ok {
			return fmt.Errorf("cannot use a %s as the query parameter %q: it must be a string, a number or a secret", scripting.TypeName(v), k)
		}
		if size += len(k) + len(s) + 2; size > maxHeaderBytes {
			return fmt.Errorf("cannot use a query of more than %d bytes", maxHeaderBytes)
		}
		values.Set(k, s)
	}
	rest, fragment, _ := strings.Cut(req.URL, "#")
	_ = fragment // is not sent
	sep := "?"
	if strings.Contains(rest, "?") {
		sep = "&"
	}
	if len(values) > 0 {
		req.URL = rest + sep + values.Encode()
	}
	return nil
}

func addHeaders(req *egress.Request, opts *scripting.Map) error {
	headers, ok := option[*scripting.Map](opts, "headers")
	if !ok {
		return nil
	}
	size := 0
	for _, name := range headers.Keys() {
		v, _ := headers.Get(name)
		value, ok := revealText(v)
		if list, is := v.(*scripting.List); is {
			ok = true
			for _, part := range list.Items {
				s, text := revealText(part)
				ok = ok && text
				if len(value)+len(s) > maxHeaderBytes {
					return headersTooLong()
				}
				value += s
			}
		}
		if size += len(name) + len(value); size > maxHeaderBytes {
			return headersTooLong()
		}
		if !ok {
			return fmt.Errorf("cannot use a %s as the header %s: it must be a string or a secret, or a list of them", scripting.TypeName(v), name)
		}
		req.Header = slices.DeleteFunc(req.Header, func(h egress.Header) bool { return strings.EqualFold(h.Name, name) })
		req.Header = append(req.Header, egress.Header{Name: name, Value: value})
	}
	return nil
}

func headersTooLong() error {
	return fmt.Errorf("cannot use headers of more than %d bytes together", maxHeaderBytes)
}

func addAuth(req *egress.Request, opts *scripting.Map) error {
	bearer, hasBearer := option[scripting.Value](opts, "bearer")
	basic, hasBasic := option[*scripting.Map](opts, "basic")
	set := slices.ContainsFunc(req.Header, func(h egress.Header) bool { return strings.EqualFold(h.Name, "Authorization") })
	switch {
	case hasBearer && hasBasic || set && (hasBearer || hasBasic):
		return errors.New("cannot use more than one of basic, bearer and the header Authorization")
	case hasBearer:
		token, ok := revealText(bearer)
		if !ok {
			return fmt.Errorf("cannot use a %s as bearer: it must be a string or a secret", scripting.TypeName(bearer))
		}
		req.Header = append(req.Header, egress.Header{Name: "Authorization", Value: "Bearer " + token})
	case hasBasic:
		u, _ := basic.Get("username")
		p, _ := basic.Get("password")
		user, ok := revealText(u)
		password, ok2 := revealText(p)
		if !ok || !ok2 || strings.Contains(user, ":") {
			return errors.New("cannot use this as basic: username and password must be texts or secrets, and the name without a colon")
		}
		req.Header = append(req.Header, egress.Header{Name: "Authorization", Value: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))})
	}
	return nil
}

// JSON finds a function of the module json.
func (o *Access) JSON(name string) *scripting.Function {
	for _, m := range o.modules {
		if m.Name == "json" {
			if f, ok := m.Func(name); ok {
				return f
			}
		}
	}
	return nil
}
