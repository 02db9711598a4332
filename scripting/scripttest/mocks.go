package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/registry"
)

// mocks are what stands for the world outside: what a test says is there, and
// nothing else.
type mocks struct {
	words  scripting.TestWords
	mu     sync.Mutex
	file   replies // said outside of tests
	test   replies // said in the test that runs
	calls  []*scripting.Map
	denied error                                   // the first use of what was not mocked
	used   bool                                    // something was asked
	encode func(v scripting.Value) (string, error) // as JSON
	fault  func(what string) error                 // of --chaos; nil: none
	// transport answers requests in the place of replies; nil: replies do.
	transport http.RoundTripper
}

// replies are mocks by kind and key: "http" and "GET https://x/", "env", "files"
// and "exec".
type replies map[string]map[string]*reply

// reply is what one key answers: a value, values one after the other, or what a
// function of the test returns.
type reply struct {
	value scripting.Value
	used  int
}

// next returns the answer to a call with these arguments.
func (r *reply) next(args ...scripting.Value) (scripting.Value, error) {
	switch v := r.value.(type) {
	case *scripting.List:
		if len(v.Items) == 0 {
			return nil, errors.New("the list of its answers is empty")
		}
		r.used++
		return v.Items[min(r.used, len(v.Items))-1], nil
	case scripting.Callback:
		return v(args...)
	}
	return r.value, nil
}

// set replaces the mocks of a kind.
func (m *mocks) set(kind string, inTest bool, values *scripting.Map) {
	m.mu.Lock()
	defer m.mu.Unlock()
	into := &m.file
	if inTest {
		into = &m.test
	}
	if *into == nil {
		*into = replies{}
	}
	all := map[string]*reply{}
	for _, k := range values.Keys() {
		v, _ := values.Get(k)
		all[k] = &reply{value: v}
	}
	(*into)[kind] = all
}

// endTest forgets what the test said.
func (m *mocks) endTest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.test, m.calls, m.denied = nil, nil, nil
}

// takeDenied returns what was used without a mock, once.
func (m *mocks) takeDenied() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.denied
	m.denied = nil
	return err
}

// mocking is how a test says what a key answers.
func (m *mocks) mocking(kind, key, answer string) string {
	if m.words == scripting.Vitest {
		answer = strings.ReplaceAll(answer, " =", ":")
		return fmt.Sprintf(`write %s({ "%s": %s }), of "weir/test"`, kind, key, answer)
	}
	return fmt.Sprintf(`write weir.test.%s { ["%s"] = %s }`, kind, key, answer)
}

// deny notes and returns that something was not mocked.
func (m *mocks) deny(what, instead string) error {
	err := fmt.Errorf("%s is not mocked: %s", what, instead)
	if m.denied == nil {
		m.denied = err
	}
	return err
}

// find returns the first of keys that is mocked; a key that ends with * is for
// all that begin so, and the longest of them counts. mu is held.
func (m *mocks) find(kind string, keys ...string) *reply {
	for _, from := range []replies{m.test, m.file} {
		all := from[kind]
		for _, k := range keys {
			if r := all[k]; r != nil {
				return r
			}
		}
		patterns := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
			return cmp.Or(len(b)-len(a), strings.Compare(a, b))
		})
		for _, p := range patterns {
			begin, ok := strings.CutSuffix(p, "*")
			if ok && slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, begin) }) {
				return all[p]
			}
		}
	}
	return nil
}

// catalog returns the catalog of a folder whose components meet the mocks. With
// granted they are granted all that they need.
func (m *mocks) catalog(c component.Catalog, granted bool) component.Catalog {
	return registry.WithOutside(c, host.Outside{
		HTTP: m, LookupEnv: m.lookupEnv, ReadFile: m.readFile, Exec: m.exec, GrantAll: granted, Manual: true,
	})
}

// RoundTrip answers a request. One that is not mocked fails, and fails the test.
func (m *mocks) RoundTrip(req *http.Request) (*http.Response, error) {
	if m.transport != nil {
		return m.transport.RoundTrip(req)
	}
	body := ""
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		body = string(text)
	}
	asked := scripting.NewMap()
	asked.Set("method", req.Method)
	asked.Set("url", req.URL.String())
	headers := scripting.NewMap()
	for _, k := range slices.Sorted(maps.Keys(req.Header)) {
		headers.Set(k, strings.Join(req.Header[k], ", "))
	}
	asked.Set("headers", headers)
	asked.Set("body", body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, asked)
	url := req.URL.String()
	m.used = true
	if m.fault != nil {
		if err := m.fault(req.Method + " " + url); err != nil {
			return nil, err
		}
	}
	r := m.find("http", req.Method+" "+url, url)
	if r == nil {
		return nil, m.deny(req.Method+" "+url, m.mocking("http", req.Method+" "+url, `{ status = 200, body = "…" }`))
	}
	v, err := r.next(asked)
	if err != nil {
		return nil, err
	}
	res, err := m.response(v)
	if err != nil {
		return nil, err
	}
	res.Request = req
	return res, nil
}

// response makes a response of a string, which is the body, or of a table.
func (m *mocks) response(v scripting.Value) (*http.Response, error) {
	status, body := 200, ""
	header := http.Header{}
	switch v := v.(type) {
	case string:
		body = v
	case *scripting.Map:
		if text, ok, err := m.jsonOf(v); err != nil {
			return nil, fmt.Errorf("cannot use this mocked response: %w", err)
		} else if ok {
			body = text
			header.Set("Content-Type", "application/json") // unless headers has another
		}
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			ok := true
			switch k {
			case "status":
				var n float64
				n, ok = number(x)
				status = int(n)
			case "body":
				body, ok = x.(string)
			case "json":
			case "error":
				if text, is := x.(string); is {
					return nil, errors.New(text)
				}
				ok = false
			case "headers":
				var h *scripting.Map
				if h, ok = x.(*scripting.Map); ok {
					for _, name := range h.Keys() {
						value, _ := h.Get(name)
						text, is := value.(string)
						if !is {
							return nil, fmt.Errorf("cannot use a %s as the header %s of a mocked response: it is a string", typeName(value), name)
						}
						header.Set(name, text)
					}
				}
			default:
				return nil, fmt.Errorf("a mocked response has no %q: it has status, headers and body or json, or error", k)
			}
			if !ok {
				return nil, fmt.Errorf("cannot use a %s as %s of a mocked response", typeName(x), k)
			}
		}
	default:
		return nil, fmt.Errorf("cannot use a %s as a mocked response: write a table with status and body or json, or the body", typeName(v))
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// jsonOf returns the value of the key json as text; ok is false without one.
func (m *mocks) jsonOf(v *scripting.Map) (text string, ok bool, err error) {
	x, ok := v.Get("json")
	if !ok || x == nil {
		return "", false, nil
	}
	if body, both := v.Get("body"); both && body != nil {
		return "", false, errors.New("it has both body and json; give one of them")
	}
	if text, err = m.encode(x); err != nil {
		return "", false, fmt.Errorf("json: %w", err)
	}
	return text, true, nil
}

func (m *mocks) lookupEnv(name string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find("env", name); r != nil {
		return r.value.(string), true
	}
	return "", false
}

func (m *mocks) readFile(name string, limit int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = true
	if m.fault != nil {
		if err := m.fault("reading " + name); err != nil {
			return nil, err
		}
	}
	r := m.find("files", name)
	if r == nil {
		return nil, m.deny("the file "+name, m.mocking("files", name, `"…"`)+", or false for one that is not there")
	}
	v, err := r.next(name)
	if err != nil {
		return nil, err
	}
	text, ok := v.(string)
	switch {
	case v == false:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case !ok:
		return nil, fmt.Errorf("cannot use a %s as the content of %s: it is a string", typeName(v), name)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("cannot read %s: %w: it has %d bytes", name, egress.ErrTooLarge, len(text))
	}
	return []byte(text), nil
}

func (m *mocks) exec(_ context.Context, c egress.Command) (out egress.CommandResult, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	full := strings.Join(append([]string{c.Path}, c.Args...), " ")
	base := path.Base(filepath.ToSlash(c.Path))
	short := strings.Join(append([]string{base}, c.Args...), " ")
	m.used = true
	if m.fault != nil {
		if err := m.fault("running " + short); err != nil {
			return out, err
		}
	}
	r := m.find("exec", short, full, base, c.Path)
	if r == nil {
		return out, m.deny("the command "+short, m.mocking("exec", short, `"what it prints"`))
	}
	args := &scripting.List{}
	for _, a := range c.Args {
		args.Items = append(args.Items, a)
	}
	v, err := r.next(args, c.Stdin)
	if err != nil {
		return out, err
	}
	if out, err = commandResult(v); err == nil && int64(max(len(out.Stdout), len(out.Stderr))) > c.MaxOutput {
		return egress.CommandResult{}, fmt.Errorf("%w: it wrote more than %d bytes", egress.ErrTooLarge, c.MaxOutput)
	}
	return out, err
}

func commandResult(v scripting.Value) (out egress.CommandResult, err error) {
	switch v := v.(type) {
	case string:
		out.Stdout = v
	case *scripting.Map:
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			text, ok := x.(string)
			switch k {
			case "code":
				var n float64
				n, ok = number(x)
				out.Code = int(n)
			case "stdout":
				out.Stdout = text
			case "stderr":
				out.Stderr = text
			case "error":
				if ok {
					return out, errors.New(text)
				}
			default:
				return out, fmt.Errorf("a mocked command has no %q: it has code, stdout, stderr or error", k)
			}
			if !ok {
				return out, fmt.Errorf("cannot use a %s as %s of a mocked command", typeName(x), k)
			}
		}
	default:
		return out, fmt.Errorf("cannot use a %s as what a mocked command did: write a table with code and stdout, or what it prints", typeName(v))
	}
	return out, nil
}

// allStrings returns an error for the first variable whose value is no string.
func allStrings(env *scripting.Map) error {
	for _, k := range env.Keys() {
		if v, _ := env.Get(k); typeName(v) != "string" {
			return fmt.Errorf("cannot use a %s as the environment variable %s: it is a string", typeName(v), k)
		}
	}
	return nil
}

// mocksType is what weir.test.http and its like return.
var mocksType = &scripting.ObjectType{
	Name: "mock", Doc: "Mocks of external resources.", New: "http",
	Methods: []scripting.Function{
		{Name: "calls", Doc: "The requests that the test has made so far, as tables with method, url, headers and body.", Result: scripting.Result{Kind: scripting.KindList},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				m := a[0].(*mocks)
				m.mu.Lock()
				defer m.mu.Unlock()
				out := &scripting.List{}
				for _, c := range m.calls {
					out.Items = append(out.Items, c)
				}
				return out, nil
			}},
	},
}

// mockFuncs are weir.test.http, env, files and exec.
func (s *session) mockFuncs() []scripting.Function {
	mock := func(name, doc string) scripting.Function {
		f := scripting.Function{
			Name: name, Doc: doc, Params: []scripting.Param{{Name: "replies", Kind: scripting.KindMap}},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				values := a[0].(*scripting.Map)
				if name == "env" {
					if err := allStrings(values); err != nil {
						return nil, err
					}
				}
				s.mocks.set(name, s.inTest, values)
				if name == "http" {
					return &scripting.Object{Type: mocksType, Data: &s.mocks}, nil
				}
				return nil, nil
			},
		}
		if name == "http" {
			f.Result = scripting.Result{Kind: scripting.KindObject, Type: mocksType}
		}
		return f
	}
	const scope = " A call inside a test holds for that test, one outside for the whole file."
	return []scripting.Function{
		mock("http", `Sets what HTTP requests get. A key is "GET https://x/y", the URL without a method, or either with * at its end. `+
			`An answer is { status = 200, headers = …, body = "…" }, { json = … } for a JSON body, { error = "…" } for a request that fails, `+
			`the body alone, a list of answers to one call after the other, or a function that gets the request and returns an answer. `+
			`A request without an answer fails the test.`+scope),
		mock("env", `Sets environment variables: { REGION = "eu" }. A component reads them when it is opened.`+scope),
		mock("files", `Sets what files contain. A key is a path; its value is the content, false for a file that does not exist, or a list or a function as for http.`+scope),
		mock("exec", `Sets what commands do. A key is "df -h", or "df" for any arguments. A result is { code = 0, stdout = "…", stderr = "…" }, `+
			`what the command prints, a list of results, or a function that gets the arguments and the input.`+scope),
	}
}
