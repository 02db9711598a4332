package node

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/scripting/host"
)

// listener is the server on a node's own address. The instances of the node
// pass it on, so that the port stays open when a new instance takes over.
type listener struct {
	newest func() *Component

	mu     sync.Mutex
	users  int // components whose Run has not returned
	server *server.Server
	stop   context.CancelFunc
	ended  []<-chan struct{} // closed when a server has ended

	healthMu sync.Mutex
	health   component.Health // of the server
}

// check returns an error if the server cannot use the settings.
func (l *listener) check(a *server.Arguments) error {
	if a == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		return l.server.Check(a)
	}
	_, err := server.New(server.Options{}, a)
	return err
}

// addComponent begins c's Run. The settings of the newest instance apply.
func (l *listener) addComponent(c *Component) {
	l.mu.Lock()
	l.users++
	l.mu.Unlock()
	if err := l.update(c); err != nil {
		c.health.set(aspectListen, component.Health{State: component.Unhealthy, Message: err.Error(), Time: c.opts.Clock.Now()})
	}
}

// update applies c's settings to the server, unless there is a newer instance.
func (l *listener) update(c *Component) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch a := c.ownAddress(); {
	case l.newest() != c || a == nil && l.server == nil:
		return nil
	case a == nil:
		l.end()
		return nil
	case l.server != nil:
		l.healthMu.Lock()
		defer l.healthMu.Unlock()
		c.health.set(aspectListen, l.health)
		return l.server.Update(a)
	}
	s, err := server.New(server.Options{Handler: l, Logger: c.opts.Logger, Clock: c.opts.Clock, Health: l.report,
		Setting: func() string { return "address or port in the block listen of " + c.opts.Where() }}, c.ownAddress())
	if err != nil {
		return err
	}
	// The next instance continues to use it, so only removeComponent ends it.
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	l.server, l.stop, l.ended = s, stop, append(l.ended, ended)
	go func() {
		defer close(ended)
		_ = s.Run(ctx) // which returns nil
	}()
	return nil
}

// end stops the server; removeComponent waits for it. l.mu is held.
func (l *listener) end() {
	if l.server != nil {
		l.stop()
		l.server = nil
	}
}

// address returns the address on which it listens, or "".
func (l *listener) address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		return ""
	}
	return l.server.Address()
}

// handover is how long a replaced instance keeps the port open for the next
// one, whose Run is about to be called.
const handover = 2 * time.Second

// removeComponent ends c's Run; ctx is Run's and has ended. The last component
// closes the port.
func (l *listener) removeComponent(ctx context.Context, c *Component) {
	if c.ownAddress() != nil && errors.Is(context.Cause(ctx), component.ErrReplaced) {
		t := c.opts.Clock.NewTimer(handover)
		defer t.Stop()
		select {
		case <-c.admission.replaced:
		case <-t.C():
		}
	}
	l.mu.Lock()
	l.users--
	var ended []<-chan struct{}
	if l.users == 0 {
		l.end()
		ended, l.ended = l.ended, nil
	}
	l.mu.Unlock()
	for _, e := range ended {
		<-e
	}
}

// report receives the server's health.
func (l *listener) report(h component.Health) {
	l.healthMu.Lock()
	defer l.healthMu.Unlock()
	l.health = h
	if c := l.newest(); c != nil {
		c.health.set(aspectListen, h)
	}
}

// ownAddress is the context key of requests to the node's own address.
type ownAddress struct{}

// ServeHTTP passes a request to the newest instance.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := l.newest()
	if c == nil {
		host.Refuse(http.StatusServiceUnavailable, "not now: come again").Write(w)
		return
	}
	c.Handler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownAddress{}, true)))
}
