// Package http is remote.http: it polls a URL and exports what it answers, and
// exports it again when that changes.
//
// A URL that cannot be had at first fails the build. One that fails later makes
// the node unhealthy and leaves the last content exported, so that what depends
// on it keeps running. Where the server sends an ETag or Last-Modified, content
// that did not change is not sent again.
package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/httpclient"
)

// maxContent is far beyond what belongs into an argument.
const maxContent = 16 << 20

// Registration describes remote.http.
func Registration() component.Registration {
	return component.Registration{
		Name:    "remote.http",
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Build: func(o component.Options, args any) (component.Component, error) {
			o.Previous = nil // kept, it would keep all that were before it
			c := &Component{opts: o, changed: make(chan struct{}, 1)}
			if err := c.Update(args); err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// Component is one remote.http.
type Component struct {
	opts    component.Options
	changed chan struct{} // the arguments did

	mu     sync.Mutex // held while a poll is on its way
	poller *poller
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
)

// poller is one set of arguments at work.
type poller struct {
	args   Arguments
	client *http.Client
	// What the server said of the content that is exported.
	etag, modified string
}

// Update polls as args say. If that fails, the old arguments stay.
func (c *Component) Update(args any) error {
	p := &poller{args: *args.(*Arguments)}
	agent := c.opts.UserAgent
	for name, value := range p.args.Headers {
		if strings.EqualFold(name, "User-Agent") { // the client's own would win
			agent = value
		}
	}
	var err error
	if p.client, err = httpclient.NewClient(&p.args.Client.HTTP, c.opts.ID, config.WithUserAgent(agent)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Update has no context: the timeout bounds it.
	if err := c.poll(context.Background(), p); err != nil {
		p.client.CloseIdleConnections()
		return err
	}
	if c.poller != nil {
		c.poller.client.CloseIdleConnections()
	}
	if c.poller == nil || !reflect.DeepEqual(c.poller.args, p.args) {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	c.poller = p
	// Until Run nobody would close it, and Run comes at once or never.
	p.client.CloseIdleConnections()
	return nil
}

// Run polls until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	t := c.opts.Clock.NewTimer(c.frequency())
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
		case <-c.changed: // and polled
		case <-t.C():
			c.mu.Lock()
			// An error is in the health by now, and the next poll may do better.
			_ = c.poll(ctx, c.poller)
			c.mu.Unlock()
		}
		t.Reset(c.frequency())
	}
}

func (c *Component) frequency() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.poller.args.PollFrequency
}

// poll exports what the URL answers and reports how that went.
func (c *Component) poll(ctx context.Context, p *poller) error {
	content, err := p.get(ctx)
	switch {
	case errors.Is(err, errNotModified):
		err = nil
	case err == nil:
		c.opts.Export(Exports{component.OptionalSecret{IsSecret: p.args.IsSecret, Value: content}})
	case ctx.Err() != nil:
		return err // weir stops or the node goes
	}
	if err != nil {
		err = fmt.Errorf("cannot poll: %w", err)
		c.opts.Health(component.Health{State: component.Unhealthy, Message: err.Error(), Time: c.opts.Clock.Now()})
		return err
	}
	c.opts.Health(component.Health{State: component.Healthy, Message: "polled the URL", Time: c.opts.Clock.Now()})
	return nil
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
	case p.args.Method != http.MethodGet: // an answer to others depends on more
	case p.etag != "":
		req.Header.Set("If-None-Match", p.etag)
	case p.modified != "":
		req.Header.Set("If-Modified-Since", p.modified)
	}
	for name, value := range p.args.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("%s: %w", address(req.URL), said(ctx, err))
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
		return "", fmt.Errorf("cannot read the answer of %s: %w", address(req.URL), said(ctx, err))
	}
	if b.Len() > maxContent {
		return "", fmt.Errorf("%s answers more than the %d bytes allowed", address(req.URL), maxContent)
	}
	p.etag, p.modified = resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	return strings.TrimSpace(b.String()), nil
}

// said returns err without the URL, of which others tell what is not secret,
// and with the reason for which ctx ended if it did.
func said(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// address is a URL without what may be secret in it.
func address(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment = nil, "", ""
	return c.String()
}
