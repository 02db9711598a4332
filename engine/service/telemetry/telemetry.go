// Package telemetry is the service for weir's own logs and metrics: the block
// logging, and the registry behind /metrics.
//
// Level and format can change while weir runs; existing loggers use the new
// values.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// Arguments are those of the block logging.
type Arguments struct {
	// Level is the least that is logged: debug, info, warn or error.
	Level string `alloy:"level,attr,optional"`
	// Format is logfmt or json. A format on the command line takes precedence.
	Format string `alloy:"format,attr,optional"`
	// Destination is where logs go. Only stderr is supported.
	Destination string `alloy:"destination,attr,optional"`
	// WriteTo is a list of receivers of logs. It is not supported.
	WriteTo []*flow.Receiver `alloy:"write_to,attr,optional"`
}

// SetToDefault sets Alloy's defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Level: "info", Format: "logfmt", Destination: "stderr"}
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Formats are the supported log formats.
var Formats = []string{"logfmt", "json"}

// Validate returns all errors.
func (a *Arguments) Validate() error {
	var errs []error
	if _, ok := levels[a.Level]; !ok {
		errs = append(errs, fmt.Errorf("level must be debug, info, warn or error, not %q", a.Level))
	}
	if !slices.Contains(Formats, a.Format) {
		errs = append(errs, fmt.Errorf("format must be logfmt or json, not %q", a.Format))
	}
	if a.Destination != "stderr" {
		errs = append(errs, fmt.Errorf("destination %q is not supported: use \"stderr\"", a.Destination))
	}
	if len(a.WriteTo) > 0 {
		errs = append(errs, errors.New("write_to is not supported: collect the standard error output of weir like the log of any other process"))
	}
	return errors.Join(errs...)
}

// Options are the options of New.
type Options struct {
	// Output is the destination of logs; nil discards them.
	Output io.Writer
	// Format overrides the format of the block, unless it is "".
	Format string
}

// Service is the telemetry service. It works as soon as New returns; Run only
// waits.
type Service struct {
	registry *prometheus.Registry
	root     *root
	format   string
}

// New returns the service with the block's defaults.
func New(o Options) (*Service, error) {
	if o.Format != "" && !slices.Contains(Formats, o.Format) {
		return nil, fmt.Errorf("log format must be logfmt or json, not %q", o.Format)
	}
	if o.Output == nil {
		o.Output = io.Discard
	}
	s := &Service{registry: prometheus.NewRegistry(), root: newRoot(o.Output), format: o.Format}
	s.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		files.Collector{},
		s.root.lines,
	)
	var a Arguments
	a.SetToDefault()
	return s, s.Update(&a)
}

// Logger returns the logger of weir.
func (s *Service) Logger() *slog.Logger { return slog.New(&handler{root: s.root}) }

// Kept returns a logger whose lines are in Recent, but not in the output: they are printed in
// another form.
func (s *Service) Kept() *slog.Logger {
	return slog.New(slog.NewTextHandler(kept{s.root.out}, &slog.HandlerOptions{Level: &s.root.level, ReplaceAttr: attr}))
}

// Recent returns a copy of the last log lines, at most 512 KiB.
func (s *Service) Recent() []byte {
	s.root.out.mu.Lock()
	defer s.root.out.mu.Unlock()
	return s.root.out.last.lines()
}

// Format returns the current log format: logfmt or json.
func (s *Service) Format() string { return s.root.current.Load().name }

// Registerer returns the Registerer for metrics in /metrics.
func (s *Service) Registerer() prometheus.Registerer { return s.registry }

// Gatherer returns the Gatherer of /metrics.
func (s *Service) Gatherer() prometheus.Gatherer { return s.registry }

// Definition describes the service.
func (s *Service) Definition() service.Definition {
	return service.Definition{
		Name:  "telemetry",
		Block: "logging",
		NewConfig: func() any {
			a := new(Arguments)
			a.SetToDefault()
			return a
		},
		Doc: component.Doc{
			Summary: "Configures weir's log.",
			Args: map[string]string{
				"level":       "The lowest level to log: debug, info, warn or error.",
				"format":      "logfmt or json. A format on the command line takes precedence.",
				"destination": "The destination of the log. Only stderr is supported.",
				"write_to":    "Not supported yet.",
			},
			Example: "logging {\n  level  = \"debug\"\n  format = \"json\"\n}\n",
		},
	}
}

// Run waits for ctx to end.
func (s *Service) Run(ctx context.Context, _ service.Host) error {
	<-ctx.Done()
	return nil
}

// Update applies *Arguments.
func (s *Service) Update(config any) error {
	a := config.(*Arguments)
	format := a.Format
	if s.format != "" {
		format = s.format
	}
	s.root.set(levels[a.Level], format)
	return nil
}

// Data returns a service.TelemetryData.
func (s *Service) Data() any { return service.TelemetryData{Gatherer: s.registry} }

var _ service.Service = (*Service)(nil)
