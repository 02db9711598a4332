package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/server"
)

// listener listens on one address.
type listener struct {
	c        *Component
	key      string
	settings atomic.Pointer[settings]
	tls      atomic.Pointer[tls.Config] // nil without TLS
	hosts    *hosts
	// before is the listener that goes on until this one listens; nil for none.
	before atomic.Pointer[listener]
	loans  chan *loan // requests of the listener that replaces this one

	mu          sync.Mutex
	address     string // "" if it does not listen
	err         error  // the reason
	connections func() int
	free        []uint64 // Sources that no connection uses

	judged  time.Time // the time of the last log line about a message that could not be parsed
	failing bool
}

func newListener(c *Component, a *Listener) *listener {
	return &listener{c: c, key: a.key(), hosts: newHosts(c.resolve), loans: make(chan *loan), connections: func() int { return 0 }}
}

// The pauses between attempts to open an address double from minPause to maxPause.
const (
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// run listens until ctx ends, and sends the messages that it has read until base
// ends.
func (l *listener) run(ctx, base context.Context) {
	var senders sync.WaitGroup
	defer senders.Wait()
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	defer disconnect() // when the address is closed
	a := l.settings.Load().args
	address := a.Address
	for pause := minPause; ctx.Err() == nil; {
		borrowed, err := l.serve(ctx, connected, base, address, &senders)
		if err == nil {
			address = l.listens() // with the port, if that is 0 in the config
			l.lend(ctx, borrowed)
			pause = minPause
			continue
		}
		if pause == minPause {
			l.c.o.Logger.Error("cannot listen", "protocol", a.Protocol, "err", err)
		}
		l.report("", fmt.Errorf("%w; next try in %s", err, pause))
		t := l.c.o.Clock.NewTimer(pause)
		select {
		case <-t.C():
		case borrowed := <-l.loans:
			l.lend(ctx, borrowed)
		case <-ctx.Done():
		}
		t.Stop()
		pause = min(2*pause, maxPause)
	}
}

// serve returns nil when ctx has ended, a loan if another listener needs the port, and
// an error if the address cannot be opened. Connections stay open until connected ends.
// The goroutines that send messages are in senders.
func (l *listener) serve(ctx, connected, base context.Context, address string, senders *sync.WaitGroup) (*loan, error) {
	if l.settings.Load().args.Protocol == "udp" {
		return l.serveUDP(ctx, base, address, senders)
	}
	return l.serveTCP(ctx, connected, base, address, senders)
}

// loan asks a listener to close its address for one with the same port and another host:
// both cannot be open together.
type loan struct {
	closed chan struct{} // closed when the address is closed
	back   chan struct{} // closed when the listener may open it again
}

// open opens the address of l by try. It closes the address of the previous listener
// first if both cannot be open together. giveBack, which is not nil, must be called when
// l has closed the address.
func open[T any](ctx context.Context, l *listener, try func() (T, error)) (s T, giveBack func(), err error) {
	s, err = try()
	before := l.before.Load()
	if !errors.Is(err, server.ErrInUse) || before == nil || !l.excludes(before) {
		return s, func() {}, err
	}
	want := &loan{closed: make(chan struct{}), back: make(chan struct{})}
	select {
	case before.loans <- want:
	case <-ctx.Done():
		return s, func() {}, err
	}
	<-want.closed
	giveBack = func() { close(want.back) }
	if s, err = try(); err != nil {
		giveBack()
		giveBack = func() {}
	}
	return s, giveBack, err
}

// hold keeps the address open until ctx ends, or another listener needs it.
func (l *listener) hold(ctx context.Context) *loan {
	select {
	case borrowed := <-l.loans:
		return borrowed
	case <-ctx.Done():
		return nil
	}
}

// lend waits until the closed address may be opened again, or ctx ends.
func (l *listener) lend(ctx context.Context, borrowed *loan) {
	for borrowed != nil {
		l.report("", nil)
		close(borrowed.closed)
		select {
		case <-borrowed.back:
			return
		case borrowed = <-l.loans: // the last borrower was replaced
		case <-ctx.Done():
			return
		}
	}
}

// setting describes the argument that sets the address, for errors.
func (l *listener) setting() string { return "address in a block listener of " + l.c.o.Where() }

func (l *listener) report(address string, err error) {
	l.mu.Lock()
	l.address, l.err = address, err
	l.mu.Unlock()
	l.c.report()
}

// listens returns the address on which it listens, or "".
func (l *listener) listens() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.address
}

// serving returns l if it listens, or else the previous listener that listens in its
// place; nil for none.
func (l *listener) serving() *listener {
	if l.listens() != "" {
		return l
	}
	return l.before.Load()
}

// excludes reports whether l may be unable to listen because o does.
func (l *listener) excludes(o *listener) bool {
	a := l.settings.Load().args
	return a.Protocol == o.settings.Load().args.Protocol && server.SamePort(a.Address, o.listens())
}

func (l *listener) listening(address net.Addr) {
	l.before.Store(nil)
	l.c.wake()
	l.c.o.Logger.Info("listening", "address", address.String(), "protocol", l.settings.Load().args.Protocol, "tls", l.tls.Load() != nil)
	l.report(address.String(), nil)
}

// takeSource returns a Source that no other connection uses.
func (l *listener) takeSource() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		s := l.free[n-1]
		l.free = l.free[:n-1]
		return s
	}
	return batch.NewPushSource()
}

func (l *listener) giveSource(s uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, s)
}

// logParseState logs when messages begin or stop to be invalid, once per change
// and at most once a minute.
func (l *listener) logParseState(good bool, err error, sample []byte) {
	if err == nil && !good {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := l.c.o.Clock.Now(); {
	case err != nil && !l.failing && (l.judged.IsZero() || now.Sub(l.judged) >= time.Minute):
		l.failing, l.judged = true, now
		l.c.o.Logger.Warn("cannot parse a message, it is dropped; more of them are counted only", "listener", l.key, "err", err, "message", string(sample))
	case err == nil && l.failing:
		l.failing = false
		l.c.o.Logger.Info("messages parse again", "listener", l.key)
	}
}

// senderLabels returns the labels of a sender that a rule reads.
func (l *listener) senderLabels(ctx context.Context, s *settings, addr netip.Addr) (ls []batch.Label) {
	addr = addr.Unmap()
	if s.reads[ip] {
		ls = append(ls, batch.Label{Name: labelIP, Value: addr.WithZone("").String()})
	}
	if s.reads[host] {
		ls = append(ls, batch.Label{Name: labelHost, Value: l.hosts.name(ctx, addr, s.args.UDPHostCacheSize, l.c.o.Clock.Now())})
	}
	return ls
}

// hosts caches the names of senders.
type hosts struct {
	resolve func(context.Context, string) string

	mu    sync.Mutex
	names map[netip.Addr]hostName
}

type hostName struct {
	name        string
	asked, used time.Time
}

func newHosts(resolve func(context.Context, string) string) *hosts {
	return &hosts{resolve: resolve, names: map[netip.Addr]hostName{}}
}

// The timeout of a lookup, and how long a name is cached.
const (
	resolveTimeout = 2 * time.Second
	resolveEvery   = time.Hour
)

// name returns the name of an address, or "". It may block.
func (h *hosts) name(ctx context.Context, addr netip.Addr, size int, now time.Time) string {
	h.mu.Lock()
	n, ok := h.names[addr]
	if ok && now.Sub(n.asked) < resolveEvery {
		n.used = now
		h.names[addr] = n
		h.mu.Unlock()
		return n.name
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	n = hostName{h.resolve(ctx, addr.String()), now, now}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[addr] = n
	for len(h.names) > size {
		var oldest netip.Addr
		for a, n := range h.names {
			if !oldest.IsValid() || n.used.Before(h.names[oldest].used) {
				oldest = a
			}
		}
		delete(h.names, oldest)
	}
	return n.name
}

// resolve looks up a name with the system's resolver.
func resolve(ctx context.Context, addr string) string {
	names, _ := net.DefaultResolver.LookupAddr(ctx, addr) // an address without a name is not an error
	return joinNames(names)
}

func joinNames(names []string) string {
	slices.Sort(names)
	var out []byte
	for i, n := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, n...)
	}
	return string(out)
}
