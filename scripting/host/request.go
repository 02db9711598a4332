package host

import (
	"compress/gzip"
	"compress/zlib"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
)

// request is a request in the hook http. It is immutable.
type request struct {
	method, path, remote string
	query                url.Values
	params               map[string]string
	header               http.Header
	body                 string
	decode               *scripting.Function // of JSON; nil: there is no such module
}

// NewRequest returns the argument of a hook for a request whose body has been
// read.
func NewRequest(r *http.Request, route scripting.Route, body string, decode *scripting.Function) (*scripting.Object, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errors.New("cannot read the query of the URL")
	}
	q := &request{
		method: r.Method, path: r.URL.Path, remote: r.RemoteAddr, query: query, params: map[string]string{},
		header: r.Header, body: body, decode: decode,
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		q.remote = host
	}
	for _, name := range route.Params {
		q.params[name] = r.PathValue(name)
	}
	return &scripting.Object{Type: requestType, Data: q}, nil
}

// requestType is the type of the hook http's argument.
var requestType = &scripting.ObjectType{
	Name: "http.Request",
	Doc:  "A request received by a source.",
	Fields: []scripting.Param{
		{Name: "method", Kind: scripting.KindString, Doc: "The method, such as POST."},
		{Name: "path", Kind: scripting.KindString, Doc: "The path, decoded, without the prefix of the component, such as /hook."},
		{Name: "params", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: `The values of the wildcards of the route, by name: params.team for "POST /hook/{team}".`},
		{Name: "query", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The query parameters by name; for a repeated parameter, its first value."},
		{Name: "headers", Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The headers by name, in lower case. Repeated headers are joined with commas."},
		{Name: "body", Kind: scripting.KindString, Doc: "The body, decompressed, with its bytes unchanged."},
		{Name: "remote_address", Kind: scripting.KindString, Doc: "The IP address of the client, or of the proxy in between."},
	},
	Read: func(data any, field string) scripting.Value { return data.(*request).read(field) },
	String: func(data any) string {
		return fmt.Sprintf("http.Request(%s %s)", data.(*request).method, data.(*request).path)
	},
	Methods: []scripting.Function{
		{
			Name: "header", Doc: "Returns a header. Names are case-insensitive.",
			Params: []scripting.Param{{Name: "name", Kind: scripting.KindString, Doc: "The name."}},
			Result: scripting.Result{Kind: scripting.KindString, Optional: true, Doc: "The value; nil if the header is missing."},
			Uses: []scripting.Use{requestUse(`if req:header("X-Kind") ~= "disk" then return 422 end`, `headers = { ["x-kind"] = "net" }`,
				`if (req.header("X-Kind") !== "disk") return 422;`, `headers: { "x-kind": "net" }`, `422`)},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				if v := a[0].(*request).header.Values(a[1].(string)); len(v) > 0 {
					return strings.Join(v, ", "), nil
				}
				return nil, nil
			},
		},
		{
			Name: "query_all", Doc: "Returns all values of a query parameter.",
			Params: []scripting.Param{{Name: "name", Kind: scripting.KindString, Doc: "The name."}},
			Result: scripting.Result{Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The values in their order; empty if the parameter is missing."},
			Uses: []scripting.Use{requestUse(`return table.concat(req:query_all("job"), "+")`, `path = "/hook?job=a&job=b"`,
				`return req.queryAll("job").join("+");`, `path: "/hook?job=a&job=b"`, `"a+b"`)},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				l := &scripting.List{Items: []scripting.Value{}}
				for _, v := range a[0].(*request).query[a[1].(string)] {
					l.Items = append(l.Items, v)
				}
				return l, nil
			},
		},
		{
			Name: "json", Doc: "Decodes the body as JSON.",
			Result: scripting.Result{Kind: scripting.KindAny, Doc: "The value.", Fails: true},
			Uses: []scripting.Use{requestUse("local hook, err = req:json()\n  if not hook then return { status = 400, body = err } end\n  return hook.name",
				`body = [[{"name":"disk"}]]`,
				"try {\n        return req.json().name;\n      } catch (err) {\n        return { status: 400, body: String(err) };\n      }", `body: '{"name":"disk"}'`, `"disk"`)},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				q := a[0].(*request)
				if q.decode == nil {
					return nil, errors.New("cannot decode JSON: there is no module json")
				}
				return q.decode.Call(nil, []scripting.Value{q.body})
			},
		},
		{
			Name: "form", Doc: "Decodes the body as form fields (application/x-www-form-urlencoded).",
			Result: scripting.Result{Kind: scripting.KindMap, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The fields by name; for a repeated field, its first value.", Fails: true},
			Uses: []scripting.Use{requestUse(`return assert(req:form()).text`, `body = "text=it+works"`,
				`return req.form().text;`, `body: "text=it+works"`, `"it works"`)},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				form, err := url.ParseQuery(a[0].(*request).body)
				if err != nil {
					return nil, fmt.Errorf("cannot read the form: %w", err)
				}
				return firsts(form), nil
			},
		},
		authorizedMethod(),
	},
}

// requestUse returns an example with a hook's body, the request of a test, and
// the expected status or body.
func requestUse(hook, asked, jsHook, jsAsked, want string) scripting.Use {
	field := "body"
	if want[0] != '"' {
		field = "status"
	}
	if !strings.HasPrefix(asked, "path") {
		asked, jsAsked = `path = "/hook", `+asked, `path: "/hook", `+jsAsked
	}
	return scripting.Use{
		Lua: "local weir = require \"weir\"\n\nreturn weir.source {\n  http = { [\"POST /hook\"] = function(req, ctx)\n  " + hook + "\nend },\n}",
		JS:  "import { defineSource } from \"weir\";\n\nexport default defineSource({\n  http: {\n    \"POST /hook\"(req, ctx) {\n      " + jsHook + "\n    },\n  },\n});",
		TestJS: "const answer = t.request({ method: \"POST\", " + jsAsked + " });\n" +
			"expect(answer." + field + ").toBe(" + want + ");",
		Test: "local answer = t:request { method = \"POST\", " + asked + " }\n" +
			"assert.equals(" + want + ", answer." + field + ")",
	}
}

func (q *request) read(field string) scripting.Value {
	switch field {
	case "method":
		return q.method
	case "path":
		return q.path
	case "body":
		return q.body
	case "remote_address":
		return q.remote
	case "query":
		return firsts(q.query)
	case "headers":
		return HeaderMap(q.header)
	}
	m := scripting.NewMap()
	for _, name := range slices.Sorted(maps.Keys(q.params)) {
		m.Set(name, q.params[name])
	}
	return m
}

func firsts(values url.Values) *scripting.Map {
	m := scripting.NewMap()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		m.Set(name, values[name][0])
	}
	return m
}

// HeaderMap returns headers by their names in lower case.
func HeaderMap(h http.Header) *scripting.Map {
	m := scripting.NewMap()
	for _, name := range slices.Sorted(maps.Keys(h)) {
		m.Set(strings.ToLower(name), strings.Join(h[name], ", "))
	}
	return m
}

// authorizedMethod implements req:authorized: a script cannot read a secret,
// and would not compare it in constant time.
func authorizedMethod() scripting.Function {
	secret := scripting.Param{Kind: scripting.KindAny, Doc: "A text or a secret."}
	named := func(name, doc string) scripting.Param { p := secret; p.Name, p.Doc = name, doc; return p }
	return scripting.Function{
		Name: "authorized",
		Doc:  "Reports whether the request proves that its sender knows a secret. The comparison takes constant time.",
		Params: []scripting.Param{{Name: "by", Kind: scripting.KindMap, Doc: "The method of authentication; set exactly one.", Fields: []scripting.Param{
			named("bearer", "The token in the Authorization header."),
			{Name: "basic", Kind: scripting.KindMap, Optional: true, Doc: "The user in the Authorization header.", Fields: []scripting.Param{
				named("username", "A text or a secret."), named("password", "A text or a secret."),
			}},
			{Name: "hmac", Kind: scripting.KindMap, Optional: true, Doc: "A signature of the body in a header, as sent by GitHub and similar services.", Fields: []scripting.Param{
				named("key", "The shared secret."),
				{Name: "header", Kind: scripting.KindString, Doc: "The name of the header, such as X-Hub-Signature-256."},
				{Name: "prefix", Kind: scripting.KindString, Optional: true, Doc: `The prefix of the signature, such as "sha256=".`},
				{Name: "algorithm", Kind: scripting.KindString, Optional: true, Doc: "sha256 (the default), sha1 or sha512."},
				{Name: "encoding", Kind: scripting.KindString, Optional: true, Doc: "hex (the default) or base64."},
			}},
		}}},
		Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether the request is authorized."},
		Uses: []scripting.Use{
			requestUse(`if not req:authorized { bearer = ctx.secret("s3cret") } then return 401 end`, `headers = { authorization = "Bearer guess" }`,
				`if (!req.authorized({ bearer: ctx.secret("s3cret") })) return 401;`, `headers: { authorization: "Bearer guess" }`, `401`),
			requestUse("local by = { key = ctx.secret(\"s3cret\"), header = \"X-Hub-Signature-256\", prefix = \"sha256=\" }\n  return req:authorized { hmac = by } and 202 or 401",
				`body = "hi", headers = { ["x-hub-signature-256"] = "sha256=`+sum(sha256.New, "s3cret", "hi")+`" }`,
				"const by = { key: ctx.secret(\"s3cret\"), header: \"X-Hub-Signature-256\", prefix: \"sha256=\" };\n      return req.authorized({ hmac: by }) ? 202 : 401;",
				`body: "hi", headers: { "x-hub-signature-256": "sha256=`+sum(sha256.New, "s3cret", "hi")+`" }`, `202`),
		},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			return a[0].(*request).authorized(a[1].(*scripting.Map))
		},
	}
}

func sum(algorithm func() hash.Hash, key, text string) string {
	h := hmac.New(algorithm, []byte(key))
	io.WriteString(h, text)
	return hex.EncodeToString(h.Sum(nil))
}

var signatures = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

func (q *request) authorized(by *scripting.Map) (bool, error) {
	bearer, hasBearer := option[scripting.Value](by, "bearer")
	basic, hasBasic := option[*scripting.Map](by, "basic")
	signed, hasHMAC := option[*scripting.Map](by, "hmac")
	if by.Len() != 1 || !hasBearer && !hasBasic && !hasHMAC {
		return false, &scripting.ArgError{Func: "authorized", Param: "by", Msg: "must have bearer, basic or hmac, and no more than one of them"}
	}
	switch {
	case hasBearer:
		token, err := secretOption(bearer, "bearer")
		scheme, given, _ := strings.Cut(q.header.Get("Authorization"), " ")
		return err == nil && strings.EqualFold(scheme, "Bearer") && equalSecret(given, token), err
	case hasBasic:
		u, _ := basic.Get("username")
		p, _ := basic.Get("password")
		user, err := secretOption(u, "username")
		if err != nil {
			return false, err
		}
		password, err := secretOption(p, "password")
		given := http.Request{Header: q.header}
		gotUser, gotPassword, ok := given.BasicAuth()
		sameUser, samePassword := equalSecret(gotUser, user), equalSecret(gotPassword, password)
		return err == nil && ok && sameUser && samePassword, err
	}
	return q.signed(signed)
}

// signed reports whether a header contains the signature of the body.
func (q *request) signed(by *scripting.Map) (bool, error) {
	k, _ := by.Get("key")
	key, err := secretOption(k, "key")
	if err != nil {
		return false, err
	}
	wrong := func(param, format string, args ...any) (bool, error) {
		return false, &scripting.ArgError{Func: "authorized", Param: param, Msg: fmt.Sprintf(format, args...)}
	}
	name, _ := option[string](by, "algorithm")
	if name == "" {
		name = "sha256"
	}
	algorithm := signatures[name]
	if algorithm == nil {
		return wrong("algorithm", "must be sha256, sha1 or sha512, not %q", name)
	}
	decode := hex.DecodeString
	switch e, _ := option[string](by, "encoding"); e {
	case "", "hex":
	case "base64":
		decode = base64.StdEncoding.DecodeString
	default:
		return wrong("encoding", "must be hex or base64, not %q", e)
	}
	header, _ := option[string](by, "header")
	prefix, _ := option[string](by, "prefix")
	text, ok := strings.CutPrefix(q.header.Get(header), prefix)
	got, err := decode(text)
	if !ok || err != nil {
		return false, nil
	}
	h := hmac.New(algorithm, []byte(key))
	io.WriteString(h, q.body)
	return hmac.Equal(got, h.Sum(nil)), nil
}

// secretOption returns a text, which may be a secret. It must not be empty,
// because it would then match every request.
func secretOption(v scripting.Value, name string) (string, error) {
	s, ok := revealText(v)
	if !ok {
		return "", &scripting.ArgError{Func: "authorized", Param: name, Msg: fmt.Sprintf("must be a string or a secret, not a %s", scripting.TypeName(v))}
	}
	if s == "" {
		return "", &scripting.ArgError{Func: "authorized", Param: name, Msg: "must not be empty: anyone would be authorized"}
	}
	return s, nil
}

func equalSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b)) // hashes hide the length
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// BodyError is the reason why a body was not read, with the status of the
// response.
type BodyError struct {
	Status int
	err    error
}

func (e *BodyError) Error() string { return e.err.Error() }

// ReadBody reads a body of at most limit bytes, both compressed and
// decompressed.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (string, error) {
	tooLarge := &BodyError{http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes, the limit in script.requests.max_body_size", limit)}
	if r.ContentLength > limit {
		return "", tooLarge
	}
	raw := http.MaxBytesReader(w, r.Body, limit)
	in := io.Reader(raw)
	var err error
	switch enc := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
	case "gzip", "x-gzip":
		in, err = gzip.NewReader(raw)
	case "deflate":
		in, err = zlib.NewReader(raw)
	default:
		w.Header().Set("Accept-Encoding", "gzip, deflate")
		return "", &BodyError{http.StatusUnsupportedMediaType, fmt.Errorf("the encoding %.50q is not supported; use gzip or deflate", enc)}
	}
	var b strings.Builder
	if err == nil {
		b.Grow(int(max(r.ContentLength, 0)))
		_, err = io.Copy(&b, io.LimitReader(in, limit+1))
	}
	switch timeout, is := errors.AsType[net.Error](err); {
	case errors.Is(err, flow.ErrStopped):
		return "", &BodyError{http.StatusServiceUnavailable, fmt.Errorf("cannot read the body: %w", err)}
	case is && timeout.Timeout():
		return "", &BodyError{http.StatusRequestTimeout, errors.New("the body did not arrive in time")}
	case errors.As(err, new(*http.MaxBytesError)) || int64(b.Len()) > limit:
		return "", tooLarge
	case err != nil:
		return "", &BodyError{http.StatusBadRequest, fmt.Errorf("cannot read the body: %w", err)}
	}
	return b.String(), nil
}
