// Package service is the contract of the engine's services: parts of weir
// itself that components use by name (http, telemetry) and that the config
// may configure with a block of their own (logging). A service is a node of
// the same graph, but there is exactly one and it lives as long as the process.
//
// It is not for things a user can have several of: those are components.
package service

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Definition describes a service.
type Definition struct {
	// Name is how components and other services ask for it.
	Name string
	// Block is the config block it takes, such as logging; "" for none.
	Block string
	// NewConfig returns a pointer to the block's arguments, defaults filled
	// in; nil when Block is "".
	NewConfig func() any
	// DependsOn are services that must run first.
	DependsOn []string
	// Doc is the manual of the block.
	Doc component.Doc
}

// Service is one running service.
type Service interface {
	Definition() Definition
	// Run works until ctx ends. An error makes the service unhealthy. Once
	// Update has been called, Run is too, if only with a ctx that has ended.
	Run(ctx context.Context, host Host) error
	// Update takes the decoded block, or the defaults when there is none; nil
	// when Block is "". It is called before Run and on every change. An error
	// ends weir at start, so this is the place to open a port.
	Update(config any) error
	// Data is what components get from Options.Service: of a type the service
	// documents, valid before Run.
	Data() any
}

// Checker is a Service that can say beforehand what Update would refuse: the
// change of the config is then refused as a whole.
type Checker interface {
	// Check takes the decoded block, or the defaults when there is none, and
	// changes nothing. open is whether the block refers to something that is
	// not known yet, which is zero then. The error may be a
	// *component.ArgumentError.
	Check(config any, open bool) error
}

// Waiter is a Service that has to know of a block also while that cannot be
// evaluated: it refers to a component that does not run yet, or has exported
// something unusable.
type Waiter interface {
	// Wait is called instead of Update then. Values that are not known are zero. An error
	// ends weir at start.
	Wait(config any) error
}

// Sourced is a Service that reads files and wants Update called (with the same
// arguments) when one of them changed.
type Sourced interface {
	// Sourced returns absolute paths. The engine asks after each Update or Wait,
	// also one that failed.
	Sourced() []string
}

// Host is what a service sees of the engine. All methods are safe for
// concurrent use and read an immutable snapshot.
type Host interface {
	// GetComponent returns the component that runs as a node now; ok is false
	// when there is no such node or nothing runs there.
	GetComponent(id string) (c component.Component, ok bool)
	// ListComponents returns the nodes in config order.
	ListComponents() []Info
	// GetServiceConsumers returns the IDs of the nodes whose registration
	// needs a service.
	GetServiceConsumers(name string) []string
	// Reloads returns the last changes, oldest first, at most 100.
	Reloads() []Reload
	// ReloadEvents returns the events after an ID, oldest first, as far as they are
	// kept, and a channel that is closed when there are more.
	ReloadEvents(after uint64) (events []ReloadEvent, more <-chan struct{})
	// Overview returns what there is to know of weir as a whole.
	Overview() Overview
	// PreviewReload returns the changes that a reload would make with the config at
	// path, "" for the config that runs, and makes none. The error is a
	// config.Diagnostics if the config would be refused.
	PreviewReload(ctx context.Context, path string) (Preview, error)
	// RequestReload reads the config again and returns the records of the change when
	// it is made, its tests included, or refused; the error is then a
	// config.Diagnostics. It waits for canaries if it is told to.
	RequestReload(ctx context.Context, canaries bool) ([]Reload, error)
}

// Overview is weir's state at one moment.
type Overview struct {
	Time    time.Time // now
	Version string
	Config  string // path of the config file or directory
	Started time.Time
	// Ready is set once the first config has been applied.
	Ready bool
	// Stopping is set once weir was told to end.
	Stopping bool
	// Reload is the last change that was made or refused.
	Reload Reload
	// Stalled are operations of the engine itself and of nodes that were removed
	// that have not returned in time.
	Stalled []string
	// Services are in the order they were started. Of their Info, what is about
	// samples and scripts is not set.
	Services []Info
}

// Info is a node's state at one moment.
type Info struct {
	ID        string
	Name      string // of the block
	Health    component.Health
	Problems  []component.Health // why it is unhealthy, one for each reason; Time is when each began
	LastError component.Health   // the last that was unhealthy or exited, also when it is over
	Stats     *flow.Stats
	Backlog   component.Backlog // of component.Queuer
	Position  string            // file:line of the block
	DependsOn []string          // IDs of the nodes it refers to
	SendsTo   []string          // IDs of the nodes whose receivers are in its arguments; they are in DependsOn too
	Sources   []string          // files of its registration
	Version   string            // of the registration that runs
	Trial     *Trial            // of a new version that is in progress; nil without
	Builds    uint64            // since the node is there, the first included
	Restarts  uint64            // after an error or a panic
	Arguments any               // decoded; secrets still in it
	Exports   any
	// Debug calls component.Debugger's DebugInfo, which may take long. nil: the component
	// has none.
	Debug func() any
}

// DialFunc is net.Dialer's DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// HTTPData is what the http service's Data returns: Handle adds a handler for
// paths that start with prefix, which is treated as a component.HTTPHandler is;
// DialContext reaches metrics, health and component.HTTPHandlers in memory when
// the address is MemoryAddress, whatever the service listens on.
type HTTPData struct {
	// ListenAddress is the TCP address, such as 127.0.0.1:12345; "" when the
	// service does not listen.
	ListenAddress string
	// MemoryAddress is the host:port under which DialContext finds the service
	// without a socket.
	MemoryAddress string
	DialContext   DialFunc
	Handle        func(prefix string, h http.Handler)
}

// TelemetryData is what the telemetry service's Data returns.
type TelemetryData struct {
	// Gatherer has weir's own metrics: the engine's and every component's.
	Gatherer prometheus.Gatherer
}
