// Package http is remote.http: it polls a URL and exports the response, and
// exports it again when it changes.
//
// Nodes that refer to it wait for the first response; other nodes do not. If the
// URL cannot be read, the node becomes unhealthy and the last content stays
// exported, so that dependent nodes continue to run. A URL that has never
// responded is retried soon. If the server sends an ETag or Last-Modified,
// unchanged content is not transferred again.
package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
)

// maxContent is the maximum size of the content. It is far larger than any
// sensible argument.
const maxContent = 16 << 20

// soon is the first delay before a URL that has never responded is requested
// again. It doubles up to poll_frequency.
const soon = time.Second

// Registration describes remote.http.
func Registration() component.Registration {
	return component.Registration{
		Name:         "remote.http",
		NewArgs:      func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:      Exports{},
		External:     true,
		ExportsLater: true,
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			c := &Component{opts: o, changed: make(chan struct{}, 1)}
			if err := c.Update(args); err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// Component is the component of a remote.http node.
type Component struct {
	opts    component.Options
	changed chan struct{} // has a value if the poller changed

	mu     sync.Mutex
	poller *poller
	cancel context.CancelFunc // ends the poll in progress; nil before the first

	trouble string // the last logged problem; only used by Run
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
)

// poller polls with one set of arguments.
type poller struct {
	args   Arguments
	client *http.Client
	// Only used by Run.
	answered bool
	wait     time.Duration // the delay until the next poll while the URL has never responded
	// Validators from the response with the exported content.
	etag, modified string
}

// Update applies new arguments. Run polls immediately.
func (c *Component) Update(args any) error {
	p := &poller{args: *args.(*Arguments), wait: soon}
	agent := c.opts.UserAgent
	for _, name := range slices.Sorted(maps.Keys(p.args.Headers)) {
		value := p.args.Headers[name]
		if strings.EqualFold(name, "User-Agent") { // the client's own would override it
			agent = value
		}
	}
	var err error
	if p.client, err = httpclient.NewClient(&p.args.Client.HTTP, config.WithUserAgent(agent)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.poller != nil {
		c.poller.client.CloseIdleConnections()
	}
	c.poller = p
	if c.cancel != nil {
		c.cancel()
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Sourced returns the files that the client reads.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.poller.args.Client.HTTP.Files()
}

// Run polls until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	t := c.opts.Clock.NewTimer(soon)
	t.Stop() // the Update in Build triggers the first poll
	defer t.Stop()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.poller.client.CloseIdleConnections()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.changed:
		case <-t.C():
		}
		t.Stop()
		p, one := c.begin(ctx)
		c.poll(one, p)
		if one.Err() != nil {
			p.client.CloseIdleConnections() // the client may have been replaced in the meantime
			continue
		}
		t.Reset(p.next())
	}
}

// begin returns the current poller and the context for one poll, which ends when
// the poller is replaced.
func (c *Component) begin(ctx context.Context) (*poller, context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	ctx, c.cancel = context.WithCancel(ctx)
	return c.poller, ctx
}

// next returns the delay between a poll and the next one.
func (p *poller) next() time.Duration {
	if p.answered {
		return p.args.PollFrequency
	}
	d := min(p.wait, p.args.PollFrequency)
	p.wait = 2 * d
	return d
}

// poll exports the content of the URL and reports the health.
func (c *Component) poll(ctx context.Context, p *poller) {
	content, err := p.get(ctx)
	if ctx.Err() != nil {
		return // the poller was replaced
	}
	health := component.Health{State: component.Healthy, Message: "polled the URL", Time: c.opts.Clock.Now()}
	switch {
	case err == nil:
		p.answered = true
		c.opts.Export(Exports{component.OptionalSecret{IsSecret: p.args.IsSecret, Value: content}})
	case !errors.Is(err, errNotModified):
		health.State, health.Message = component.Unhealthy, "cannot poll: "+err.Error()
	}
	c.log(health)
	c.opts.Health(health)
}

// log logs changes of the state of polling.
func (c *Component) log(h component.Health) {
	trouble := ""
	if h.State == component.Unhealthy {
		trouble = h.Message
	}
	switch {
	case trouble == c.trouble:
	case trouble == "":
		c.opts.Logger.Info("the URL answers again")
	default:
		c.opts.Logger.Error("no new content", "err", trouble)
	}
	c.trouble = trouble
}

// errNotModified says that the content is what it was.
var errNotModified = errors.New("not modified")

func (p *poller) get(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.args.PollTimeout, fmt.Errorf("no answer within %s", p.args.PollTimeout))
	defer cancel()
	var body io.Reader
	if p.args.Body != "" {
		body = strings.NewReader(p.args.Body)
	}
	req, err := http.NewRequestWithContext(ctx, p.args.Method, p.args.URL, body)
	if err != nil {
		return "", err
	}
	switch {
	case p.args.Method != http.MethodGet: // the response to other methods may depend on more
	case p.etag != "":
		req.Header.Set("If-None-Match", p.etag)
	case p.modified != "":
		req.Header.Set("If-Modified-Since", p.modified)
	}
	for _, name := range slices.Sorted(maps.Keys(p.args.Headers)) { // a header may be set in two spellings: use the same one each time
		value := p.args.Headers[name]
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("%s: %w", address(req.URL), withoutURL(ctx, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified && (p.etag != "" || p.modified != "") {
		return "", errNotModified
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s, want 200 OK", address(req.URL), resp.Status)
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(resp.Body, maxContent+1)); err != nil {
		return "", fmt.Errorf("cannot read the answer of %s: %w", address(req.URL), withoutURL(ctx, err))
	}
	if b.Len() > maxContent {
		return "", fmt.Errorf("%s answers more than the %d bytes allowed", address(req.URL), maxContent)
	}
	p.etag, p.modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	return strings.TrimSpace(b.String()), nil
}

// withoutURL returns err without the URL, whose public part is logged elsewhere.
// If ctx ended, the error is its cause.
func withoutURL(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// address returns the parts of a URL that are not secret.
func address(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment = nil, "", ""
	return c.String()
}
