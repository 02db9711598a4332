package scripttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/registry"
)

// maxOutside is how many requests of a trial are kept, and maxBody how much of each
// body, in bytes.
const (
	maxOutside = 20
	maxBody    = 2000
)

// closedOutside replaces everything outside of weir in a trial. It keeps what the
// script would have done.
type closedOutside struct {
	sink    bool  // requests succeed
	refusal error // of everything else

	mu   sync.Mutex
	kept []string
	more int
}

// catalog returns a catalog whose components have all that they need, and reach it only
// if o allows it.
func (c *closedOutside) catalog(of component.Catalog, o TryOptions) component.Catalog {
	outside := host.Outside{GrantAll: true, GrantPrivate: true, Manual: true, LookupEnv: o.LookupEnv}
	if !o.Allow {
		outside.HTTP, outside.ReadFile, outside.Exec, outside.LookupEnv = c, c.readFile, c.exec, c.lookupEnv
	}
	return registry.WithOutside(of, outside)
}

func (c *closedOutside) keep(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == maxOutside {
		c.more++
		return
	}
	c.kept = append(c.kept, what)
}

// taken returns what was kept, and a note if something was not.
func (c *closedOutside) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more > 0 {
		return append(c.kept, fmt.Sprintf("… and %d more", c.more))
	}
	return c.kept
}

// RoundTrip keeps a request.
func (c *closedOutside) RoundTrip(req *http.Request) (*http.Response, error) {
	what := req.Method + " " + req.URL.Redacted()
	if req.Body != nil {
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		text := strings.ToValidUTF8(string(body[:min(len(body), maxBody)]), "\ufffd")
		if len(body) > maxBody {
			text += "…"
		}
		if text != "" {
			what += "\n" + strings.TrimSuffix(text, "\n")
		}
	}
	c.keep(what)
	if !c.sink {
		return nil, c.refusal
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Request: req,
	}, nil
}

func (c *closedOutside) readFile(path string, _ int64) ([]byte, error) {
	c.keep("read " + path)
	return nil, c.refusal
}

func (c *closedOutside) exec(_ context.Context, cmd egress.Command) (egress.CommandResult, error) {
	c.keep("run " + strings.Join(append([]string{cmd.Path}, cmd.Args...), " "))
	return egress.CommandResult{}, c.refusal
}

func (c *closedOutside) lookupEnv(name string) (string, bool) {
	c.keep("environment variable " + name)
	return "", false
}
