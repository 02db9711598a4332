package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service/http"
)

// buggy panics in all of its routes.
type buggy struct{}

func (buggy) Run(ctx context.Context) error { return nil }

func (buggy) Control() nethttp.Handler {
	m := new(api.Mux)
	m.Handle("POST /before", func(nethttp.ResponseWriter, *nethttp.Request) { panic("index out of range") }, api.Operation{})
	m.Handle("POST /after", func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		fmt.Fprint(w, strings.Repeat("a part ", 1<<10))
		panic("index out of range")
	}, api.Operation{})
	m.Handle("POST /abort", func(nethttp.ResponseWriter, *nethttp.Request) { panic(nethttp.ErrAbortHandler) }, api.Operation{})
	return m
}

// TestPanics: a panic while a request is served is a response with an error, which the audit log has, or
// ends the connection if a part of the response was sent.
func TestPanics(t *testing.T) {
	h := &host{components: map[string]component.Component{"a.b.c": buggy{}}}
	l := audit.New(slog.New(slog.DiscardHandler))
	s := run(t, h, http.Options{Audit: l})
	c, base := owner(t, s), "http://"+s.Address()+"/api/v0/control/a.b.c/"
	const want = "weir has a bug: the request panicked: index out of range. The log of weir has the details; please report them."
	if status, text := get(t, c, "POST", base+"before"); status != 500 || strings.TrimSpace(text) != want {
		t.Errorf("got %d %q", status, text)
	}
	if status, text := get(t, c, "POST", base+"before", "Accept", "application/json"); status != 500 || !strings.HasPrefix(text, `{"error":{"status":500,"message":"weir has a bug`) {
		t.Errorf("got %d %q", status, text)
	}
	for _, e := range l.Entries() {
		if e.Status != 500 || e.Outcome != "refused" || e.Message != want {
			t.Errorf("the audit log has %+v", e)
		}
	}
	if n := len(l.Entries()); n != 2 {
		t.Errorf("the audit log has %d entries", n)
	}
	for path, wantErr := range map[string]error{"after": io.ErrUnexpectedEOF, "abort": io.EOF} {
		r, err := nethttp.NewRequestWithContext(t.Context(), "POST", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(r)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if !errors.Is(err, wantErr) {
			t.Errorf("%s: got %v, want %v", path, err, wantErr)
		}
	}
	if status, _ := get(t, c, "GET", "http://"+s.Address()+"/api/v0/status"); status != 200 {
		t.Errorf("the service does not go on: %d", status)
	}
}
