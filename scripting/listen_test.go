package scripting_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
)

// What the blocks of a source that takes requests may say.
func TestRequestsBlock(t *testing.T) {
	n := newOutside(t, scripting.Outside{})
	f := func(def, attrs, wantErr string) {
		t.Helper()
		path := n.f.write("a/b.lua", "local weir = require \"weir\" return weir."+def)
		n.cat.Refresh([]string{path})
		r, _ := n.cat.Lookup("a.b")
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		switch err := decodeInto(r.NewArgs(), attrs, n.sink); {
		case err == nil && wantErr != "":
			t.Errorf("%s with %s: it was taken, want %q", def, attrs, wantErr)
		case err != nil && (wantErr == "" || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("%s with %s: got %v, want %q", def, attrs, err, wantErr)
		}
	}
	serves := "source { http = { [\"/\"] = function() end } }"
	both := "source { needs = { http = true }, http = { [\"/\"] = function() end } }"
	for _, def := range []string{serves, both} {
		f(def, "", "")
		f(def, "script {\nrequests {\nmax_body_size = \"8MiB\"\nmax_requests = 5\n}\n}", "")
		f(def, "script {\nrequests {\nmax_body_size = \"9MiB\"\n}\n}", "max_body_size")
		f(def, "script {\nrequests {\nmax_requests = 0\n}\n}", "max_requests = 0: it must be between 1 and 10000")
		f(def, "script {\nlimits {\ntime = \"1ns\"\n}\n}", "script.limits.time")
	}
	f(both, "script {\nallow {\nhttp = [\"https://x/*\"]\n}\nhttp {\nproxy_url = \"http://p:1\"\n}\n}", "")
	f(serves, "script {\nhttp {\n}\n}", "http")
	f("source { poll = function() end, interval = \"1m\" }", "script {\nrequests {\n}\n}", "requests")
	f("source { poll = function() end, interval = \"1m\" }", "listen {\nport = 1\n}", "listen")
	f(serves, "listen {\nport = 0\n}", "")
	f(serves, "listen {\n}", "port")
	f(serves, "listen {\nport = 70000\n}", "cannot use port = 70000: it must be 0 to 65535")
	f(serves, "listen {\nport = 1\nconn_limit = -1\nread_timeout = \"0s\"\n}", "cannot use conn_limit = -1")
	f(serves, "listen {\nport = 1\nidle_timeout = \"-1s\"\n}", "cannot use idle_timeout")
	f(serves, "listen {\nport = 1\ntls {\n}\n}", "the certificate is missing")
}

// Mistakes in routes are found when the script is loaded.
func TestRouteMistakes(t *testing.T) {
	n := newOutside(t, scripting.Outside{})
	f := func(http, want, hint string) {
		t.Helper()
		path := n.f.write("a/b.lua", "local weir = require \"weir\"\nlocal function f() end\nreturn weir.source {\n  http = "+http+",\n}")
		n.cat.Refresh([]string{path})
		r, _ := n.cat.Lookup("a.b")
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || !strings.Contains(r.Err.Error(), hint) {
			t.Errorf("%s: got %v, want %q and %q", http, r.Err, want, hint)
		}
	}
	f(`{}`, "cannot use a map as http: it must be a table of functions by route", `write http = { ["POST /hook"] = function(req, ctx) … end }`)
	f(`f`, "as http: it must be a table of functions by route", "")
	f(`{ ["POST /hook"] = 5 }`, `a/b.lua:4: cannot use 5 as http["POST /hook"]: it must be a function`, "")
	f(`{ ["post /hook"] = f }`, `a/b.lua:2: cannot serve "post /hook": the method must be GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, or none for all`, `write "POST /hook"`)
	f(`{ ["PSOT /hook"] = f }`, `cannot serve "PSOT /hook"`, "did you mean POST?")
	f(`{ ["POST hook"] = f }`, `cannot serve "POST hook": the path must begin with "/"`, "")
	f(`{ ["hook"] = f }`, `cannot serve "hook": the path must begin with "/"`, "")
	f(`{ ["POST example.com/hook"] = f }`, `the path must begin with "/"`, "")
	f(`{ ["POST /hook/{"] = f }`, `cannot serve "POST /hook/{": at offset`, "bad wildcard segment")
	f(`{ ["POST /{a}/{a}"] = f }`, `duplicate wildcard name "a"`, "")
	f(`{ ["POST /{a...}/b"] = f }`, `not at end`, "")
	f(`{ ["GET /{a}/x"] = f, ["GET /y/{b}"] = f }`, `cannot serve both "GET /y/{b}" and "GET /{a}/x": one request can match both, and neither says more than the other`, "")
	f(`{ ["GET /a"] = f, ["GET  /a"] = f }`, `cannot serve both`, "")
}
