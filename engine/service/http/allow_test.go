package http_test

import (
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/service/ui"
)

// TestAllowed: the block ui decides who sees records and writes files, except over the control
// socket.
func TestAllowed(t *testing.T) {
	h := &host{components: map[string]component.Component{"x": server{}}}
	var allowed ui.Arguments
	s := run(t, h, http.Options{Gatherer: prometheus.NewRegistry(), Allowed: func() ui.Arguments { return allowed }, Routes: []http.Route{
		{Route: api.Route{Pattern: "POST /api/v0/records"}, LiveData: true, Handler: func(service.Host, nethttp.ResponseWriter, *nethttp.Request) {}},
	}})
	base := "http://" + s.Address()
	const off = 403
	f := func(request string, live, edit bool) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		for _, allowed = range []ui.Arguments{{}, {LiveData: true}, {Edit: true}, {LiveData: true, Edit: true}} {
			want := ""
			switch {
			case live && !allowed.LiveData:
				want = "set live_data = true"
			case edit && !allowed.Edit:
				want = "set edit = true"
			}
			for name, c := range map[string]*nethttp.Client{"token": owner(t, s), "session": session(t, s)} {
				status, body := get(t, c, method, base+path)
				if want == "" && status == off || want != "" && (status != off || !strings.Contains(body, want)) {
					t.Errorf("%s with %+v and a %s: got %d %q, want %q", request, allowed, name, status, body, want)
				}
			}
		}
	}
	for _, request := range []string{"GET /api/v0/batch/x", "GET /api/v0/tap/nowhere", "GET /api/v0/why/nowhere", "GET /api/v0/playground/nowhere", "POST /api/v0/playground/nowhere", "POST /api/v0/control/x/debug", "GET /api/v0/control/x/playground",
		"POST /api/v0/control/x/playground", "POST /api/v0/records", "GET /api/v0/control/x/state", "GET /api/v0/control/x/state/name", "GET /api/v0/control/x/state-export", "GET /api/v0/control/x/quarantine"} {
		f(request, true, false)
	}
	for _, request := range []string{"GET /api/v0/status", "GET /api/v0/control/x/history", "POST /api/v0/control/x/rollback", "PUT /api/v0/control/x/state/name", "POST /api/v0/control/x/quarantine/replay", "POST /-/reload"} {
		f(request, false, false)
	}
	f("PUT /api/v0/control/x/source", false, true)
	f("POST /api/v0/control/x/source", false, true)
}
