package http_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

// TestHistory: the parameters of the history, and what is wrong with them.
func TestHistory(t *testing.T) {
	r := history.New(clock.System{})
	h := &host{infos: []service.Info{{ID: "a", Stats: new(flow.Stats)}}}
	for second := range 3 {
		h.overview.Time = time.Unix(1000+int64(second), 0)
		h.infos[0].Stats.In.Add(5)
		r.Take(h)
	}
	s := run(t, h, http.Options{History: r})
	c, base := owner(t, s), "http://"+s.Address()+"/api/v0/history?"
	f := func(query string, wantStatus int, want string) {
		t.Helper()
		status, body := get(t, c, "GET", base+query)
		if status != wantStatus || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s, want %d %s", query, status, body, wantStatus, want)
		}
	}
	f("node=a", 200, `"times":[1000,1001,1002],"total":{},"nodes":[{"id":"a","in":[null,5,5]}]`)
	f("node=a&since=1000", 200, `"nodes":[{"id":"a","in":[5,5]}]`)
	f("node=a&since=1000.5", 200, `"times":[1001,1002]`)
	f("since="+url.QueryEscape(time.Unix(1001, 0).Format(time.RFC3339)), 200, `"times":[1002]`)
	f("since=1e99", 400, `since must be a time such as 2026-11-23T20:15:04Z or Unix seconds, not "1e99"`)
	f("since=NaN", 400, `not "NaN"`)
	f("since=yesterday", 400, `not "yesterday"`)
	f("node=a&node=b", 404, "there is no node b, and there was none in the last hour")
	f(strings.Repeat("node=a&", 101), 400, "ask for at most 100 nodes, not 101")

	s = run(t, h, http.Options{})
	base = "http://" + s.Address() + "/api/v0/history?"
	c = owner(t, s)
	f("", 404, "this weir records no history")
}
