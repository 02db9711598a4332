package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/server"
)

func (l *listener) serveTCP(ctx, connected, base context.Context, address string, senders *sync.WaitGroup) (*loan, error) {
	door, giveBack, err := open(ctx, l, func() (*server.Door, error) { return server.OpenDoor(address, l.setting()) })
	if err != nil {
		return nil, err
	}
	defer giveBack()
	l.mu.Lock()
	l.connections = door.Connections
	l.mu.Unlock()
	l.listening(door.Addr())
	var wg sync.WaitGroup
	wg.Go(func() {
		full := false
		door.Accept(l.c.o.Clock, func(conn net.Conn) {
			most := l.settings.Load().args.MaxConnections
			if most > 0 && door.Connections() > most {
				if !full {
					l.c.o.Logger.Warn("connections are refused: there are max_connections; more of them are counted only", "listener", l.key, "max_connections", most)
				}
				full = true
				l.c.metrics.refused.Inc()
				_ = conn.Close()
				return
			}
			full = false
			senders.Go(func() { l.connection(connected, base, conn) })
		}, func(err error) {
			if err != nil {
				l.c.o.Logger.Error("cannot accept connections", "err", err)
				return
			}
			l.c.o.Logger.Info("connections are accepted again")
		})
	})
	borrowed := l.hold(ctx)
	door.Close()
	wg.Wait()
	return borrowed, nil
}

// The buffer of a connection grows from minBuffer to maxBuffer if a read fills
// it, and further for long messages.
const (
	minBuffer = 8 << 10
	maxBuffer = 64 << 10
)

// connection reads messages until the sender closes the connection or ctx ends.
// While the receivers do not accept a batch, it does not read, which makes the
// sender wait.
func (l *listener) connection(ctx, base context.Context, raw net.Conn) {
	conn := raw
	if c := l.tls.Load(); c != nil {
		conn = tls.Server(raw, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return l.tls.Load(), nil }})
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	x := &lines{l: l, source: l.takeSource()}
	defer l.giveSource(x.source)
	x.setSettings(l.settings.Load())
	addr, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	x.remote = l.senderLabels(ctx, x.p.settings, addr.Addr())

	buf := make([]byte, 0, minBuffer)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(x.p.args.idleTimeout())) // an error also fails the read
		if ctx.Err() != nil {
			l.left(buf)
			return
		}
		n, err := conn.Read(buf[len(buf):cap(buf)])
		filled := len(buf)+n == cap(buf)
		buf = buf[:len(buf)+n]
		l.c.metrics.received.Add(float64(n))
		if s := l.settings.Load(); s != x.p.settings {
			x.setSettings(s)
			x.remote = l.senderLabels(ctx, s, addr.Addr())
		}
		ended := err != nil && ctx.Err() == nil
		took, bad := x.addAll(buf, ended, l.c.o.Clock.Now())
		buf = buf[:copy(buf, buf[took:])]
		if b := x.takeBatch(); b != nil && !l.c.send(base, b) {
			return
		}
		switch {
		case bad != nil:
			l.c.o.Stats.DropLines("framing", 1)
			l.c.o.Logger.Warn("connection closed: cannot tell messages apart", "remote", conn.RemoteAddr().String(), "err", bad)
			return
		case ended:
			l.ended(conn, err)
			return
		}
		buf = grow(buf, filled, x.framer.max+room)
	}
}

// grow makes room for a message, and doubles the buffer if a read filled it.
func grow(buf []byte, filled bool, need int) []byte {
	want := cap(buf)
	if filled {
		want = min(2*want, maxBuffer)
	}
	if len(buf) == cap(buf) {
		want = max(want, min(2*cap(buf), need+1))
	}
	if want <= cap(buf) {
		return buf
	}
	return append(make([]byte, 0, want), buf...)
}

// left counts an incomplete message at the end.
func (l *listener) left(buf []byte) {
	if len(buf) > 0 {
		l.c.o.Stats.DropLines("incomplete", 1)
	}
}

func (l *listener) ended(conn net.Conn, err error) {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		l.c.o.Logger.Debug("connection closed: it was idle", "remote", conn.RemoteAddr().String())
		return
	}
	l.c.o.Logger.Debug("connection ended", "remote", conn.RemoteAddr().String(), "err", err)
}
