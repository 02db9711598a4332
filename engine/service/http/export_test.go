package http

import (
	"net"
	nethttp "net/http"
	"sync/atomic"

	"github.com/weir-run/weir/engine/service"
)

// TCPHandler is what connections over TCP meet.
func (s *Service) TCPHandler() nethttp.Handler { return s.serve(overTCP) }

// Routes are the patterns of the service's own routes.
func (s *Service) Routes() (patterns []string) {
	for _, rt := range s.table() {
		patterns = append(patterns, rt.pattern)
	}
	return patterns
}

// MaxConnections is the limit of connections over TCP.
const MaxConnections = maxConnections

// StuckTime is how long a write waits for a client that does not read.
const StuckTime = stuckTime

// NewClient returns a connection as the port accepts it.
func NewClient(c net.Conn) net.Conn { return &client{Conn: c, open: new(atomic.Int64)} }

// Steady returns the rate of a node that clients get after sent, if it is now another one.
func Steady(sent, now float64) float64 {
	next := LiveStatus{Nodes: []LiveNode{{In: now}}}
	steady(LiveStatus{Nodes: []LiveNode{{In: sent}}}, next)
	return next.Nodes[0].In
}

// NewStatus is what the status shows of a host.
func NewStatus(h service.Host) Status { return newStatus(h, nil) }
