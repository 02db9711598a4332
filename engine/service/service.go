// Package service is the contract of the engine's services: parts of weir
// itself that components use by name (http, telemetry) and that the config may
// configure with their own block (logging). A service is a node of the same
// graph, but there is exactly one of it and it lives as long as the process.
//
// It is not for things of which a user can have several: those are components.
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
	// Name is the name by which components and other services request it.
	Name string
	// Block is the name of its config block, such as logging, or "".
	Block string
	// NewConfig returns a pointer to the block's arguments with their defaults. It
	// is nil if Block is "".
	NewConfig func() any
	// DependsOn are services that must run before it.
	DependsOn []string
	// Doc is the manual of the block.
	Doc component.Doc
}

// Service is one running service.
type Service interface {
	Definition() Definition
	// Run works until ctx ends. An error makes the service unhealthy. After Update
	// was called, Run is always called too, possibly with a ctx that has ended.
	Run(ctx context.Context, host Host) error
	// Update applies the decoded block, or the defaults if there is none; nil if
	// Block is "". It is called before Run and on every change. An error ends weir
	// at the start, so this is the place to open a port.
	Update(config any) error
	// Data returns the value that components get from Options.Service, of a type
	// that the service documents. It is valid before Run.
	Data() any
}

// Checker is a Service that can check a block before Update, so that an invalid
// change of the config is refused as a whole.
type Checker interface {
	// Check checks the decoded block, or the defaults if there is none, and
	// changes nothing. open reports whether the block refers to something that is
	// not known yet; that value is then zero. The error may be a
	// *component.ArgumentError.
	Check(config any, open bool) error
}

// Waiter is a Service that must know about a block even while it cannot be
// evaluated, because it refers to a component that does not run yet, or whose
// exports are unusable.
type Waiter interface {
	// Wait is then called instead of Update. Unknown values are zero. An error
	// ends weir at the start.
	Wait(config any) error
}

// Sourced is a Service that reads files. The engine calls Update with the same
// arguments when one of them changes.
type Sourced interface {
	// Sourced returns absolute paths. The engine calls it after each Update or
	// Wait, even if it failed.
	Sourced() []string
}

// Host is a service's view of the engine. All methods are safe for concurrent
// use and read an immutable snapshot.
type Host interface {
	// GetComponent returns the running component of a node; ok is false if there
	// is no such node or nothing runs there.
	GetComponent(id string) (c component.Component, ok bool)
	// ListComponents returns the nodes in config order.
	ListComponents() []Info
	// GetServiceConsumers returns the IDs of the nodes whose registration needs a
	// service.
	GetServiceConsumers(name string) []string
	// Reloads returns the last changes, oldest first, at most 100.
	Reloads() []Reload
	// ReloadEvents returns the events after an ID, oldest first, as far as they are
	// kept, and a channel that is closed when there are more.
	ReloadEvents(after uint64) (events []ReloadEvent, more <-chan struct{})
	// Overview returns the state of weir as a whole.
	Overview() Overview
	// RunningConfig returns the texts of the files of the config that runs and of the
	// modules that it imports, by path, without secrets. It takes at most 30 seconds.
	RunningConfig(ctx context.Context) (map[string]string, error)
	// PreviewReload returns the changes that a reload would make with the config at
	// path and the scripts in a folder, "" for those that run, and makes none. It takes
	// at most 30 seconds. The error is a config.Diagnostics if the config would be refused.
	PreviewReload(ctx context.Context, path, scripts string) (Preview, error)
	// RequestReload reads the config again and returns the records of the change when
	// it is made, its tests included, or refused; the error is then a
	// config.Diagnostics. It waits for canaries if it is told to.
	RequestReload(ctx context.Context, canaries bool) ([]Reload, error)
	// PlaygroundBlock returns the block of a node; ok is false unless Info.Playground is
	// set.
	PlaygroundBlock(id string) (b PlaygroundBlock, ok bool)
	// Play builds a copy of a node from another text of its block and lets it process
	// the input. The copy sends nothing, and the node stays as it is. The error is a
	// config.Diagnostics if the text is invalid; its lines are those of the text.
	Play(ctx context.Context, id, text string, in PlaygroundInput) (PlaygroundOutput, error)
}

// Overview is weir's state at one moment.
type Overview struct {
	Time    time.Time // now
	Version string
	Config  string // path of the config file or directory
	// ConfigError is why the config at this path was refused; "" if it is what runs.
	ConfigError string
	Started     time.Time
	// Ready is true after the first config has been applied.
	Ready bool
	// Stopping is true after weir was told to stop.
	Stopping bool
	// Reload is the last change that was made or refused.
	Reload Reload
	// Stalled are overdue operations of the engine itself and of removed nodes.
	Stalled []string
	// Services are in the order in which they were started. The fields of Info
	// about samples and scripts are not set.
	Services []Info
}

// Info is a node's state at one moment.
type Info struct {
	ID        string
	Name      string // of the block
	Health    component.Health
	Problems  []component.Health // why it is unhealthy, one per reason; Time is when each began
	LastError component.Health   // the last one that was unhealthy or exited, even if it is over
	Stats     *flow.Stats
	Backlog   component.Backlog // of component.Queuer
	Position  string            // file:line of the block
	DependsOn []string          // IDs of the nodes it refers to
	SendsTo   []string          // IDs of the nodes whose receivers are in its arguments; also in DependsOn
	// Sources returns the files of its registration that exist. It looks for them on disk.
	// A registration without files has no such function.
	Sources  func() []string
	Version  string // of the registration that runs
	Trial    *Trial // of a new version that is in progress; nil without
	Builds   uint64 // since the node exists, including the first
	Restarts uint64 // after an error or a panic
	// Playground reports that Host.Play can run a copy of it.
	Playground bool
	Arguments  any // decoded, including secrets
	Exports    any
	// Debug calls component.Debugger's DebugInfo, which may take long. It is nil
	// if the component does not have it.
	Debug func() any
}

// DialFunc is net.Dialer's DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// HTTPData is the result of the http service's Data. Handle adds a handler for
// paths that start with prefix, which is treated like a component.HTTPHandler.
// DialContext connects to metrics, health and component.HTTPHandlers in memory
// if the address is MemoryAddress, whatever address the service listens on.
type HTTPData struct {
	// ListenAddress is the TCP address, such as 127.0.0.1:12345, or "" if the
	// service does not listen.
	ListenAddress string
	// MemoryAddress is the host:port with which DialContext connects to the
	// service without a socket.
	MemoryAddress string
	DialContext   DialFunc
	Handle        func(prefix string, h http.Handler)
}

// TelemetryData is the result of the telemetry service's Data.
type TelemetryData struct {
	// Gatherer gathers weir's own metrics: those of the engine and of every
	// component.
	Gatherer prometheus.Gatherer
}
