package scripting

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
)

// Route is a kind of request that a source accepts.
type Route struct {
	Key    string   // as written in the script, a pattern of http.ServeMux: "POST /hook/{team}"
	Params []string // the names of its wildcards, in order
}

// maxRoutes is the maximum number of routes in a definition.
const maxRoutes = 100

// routeMethods are the methods that a route may have.
var routeMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// defineHTTP reads http = { ["POST /hook"] = function(req, ctx) … end }.
func defineHTTP(d *definer, field RawField) {
	m, ok := field.Value.(map[string]any)
	if !ok || len(m) == 0 {
		d.fail(field.Line, "cannot use %s as http: it must be a table of functions by route", describe(field.Value)).
			Hint = `write http = { ["POST /hook"] = function(req, ctx) … end }`
		return
	}
	if len(m) > maxRoutes {
		d.fail(field.Line, "cannot use %d routes in http: the limit is %d", len(m), maxRoutes)
		return
	}
	for _, key := range sortedKeys(m) {
		fn, isFunc := m[key].(Func)
		line := cmp.Or(fn.Line, field.Line)
		if !isFunc {
			d.fail(line, "cannot use %s as http[%q]: it must be a function", describe(m[key]), key)
			continue
		}
		r, hint, err := parseRoute(key)
		if err == nil {
			err = conflict(d.def.HTTP, r)
		}
		if err != nil {
			d.fail(line, "%w", err).Hint = hint
			continue
		}
		d.def.HTTP = append(d.def.HTTP, r)
	}
}

var wildcards = regexp.MustCompile(`\{([^{}]*?)(?:\.\.\.)?\}`)

// parseRoute parses a pattern. hint suggests a correction.
func parseRoute(key string) (r Route, hint string, err error) {
	method, path, ok := strings.Cut(key, " ")
	if path = strings.TrimLeft(path, " \t"); !ok {
		method, path = "", key
	}
	if method != "" && !slices.Contains(routeMethods, method) {
		upper := strings.ToUpper(method)
		if hint = config.DidYouMean(upper, routeMethods); slices.Contains(routeMethods, upper) {
			hint = fmt.Sprintf("write %q", upper+" "+path)
		}
		return r, hint, fmt.Errorf("cannot serve %q: the method must be %s, or none for all", key, strings.Join(routeMethods, ", "))
	}
	if !strings.HasPrefix(path, "/") {
		return r, `write "POST /hook"`, fmt.Errorf(`cannot serve %q: the path must begin with "/"`, key)
	}
	if err := tryRoutes(key); err != nil {
		return r, `write "POST /hook", "GET /team/{name}" or "/files/{path...}"`, fmt.Errorf("cannot serve %q: %w", key, err)
	}
	r.Key = key
	for _, w := range wildcards.FindAllStringSubmatch(path, -1) {
		if w[1] != "$" {
			r.Params = append(r.Params, w[1])
		}
	}
	return r, "", nil
}

// conflict returns an error if a route conflicts with the existing routes.
func conflict(others []Route, r Route) error {
	for _, o := range others {
		if tryRoutes(o.Key, r.Key) != nil {
			return fmt.Errorf("cannot serve both %q and %q: one request can match both, and neither says more than the other", o.Key, r.Key)
		}
	}
	return nil
}

// tryRoutes returns the error of http.ServeMux for patterns.
func tryRoutes(keys ...string) (err error) {
	defer func() {
		if v := recover(); v != nil { // http.ServeMux reports errors by panics only
			_, what, _ := strings.Cut(fmt.Sprint(v), ": ")
			err = fmt.Errorf("%s", what)
		}
	}()
	mux := http.NewServeMux()
	for _, key := range keys {
		mux.Handle(key, http.NotFoundHandler())
	}
	return nil
}
