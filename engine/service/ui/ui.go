// Package ui is the service for the block ui: what clients over TCP, such as the
// web UI, may do in addition to the state of the nodes.
//
// The service http asks it for each request. It does not serve anything itself.
package ui

import (
	"context"
	"sync/atomic"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Arguments are those of the block ui.
type Arguments struct {
	// LiveData allows to see records, and what scripts keep of them.
	LiveData bool `alloy:"live_data,attr,optional"`
	// Edit allows to write the files of scripts, and, over a network, to change what runs.
	Edit bool `alloy:"edit,attr,optional"`
}

// SetToDefault allows to see everything and to write nothing.
func (a *Arguments) SetToDefault() { *a = Arguments{LiveData: true} }

// Service is the ui service. The zero value allows nothing until Update is called.
type Service struct{ allowed atomic.Pointer[Arguments] }

// Allowed returns what the block allows.
func (s *Service) Allowed() Arguments {
	if a := s.allowed.Load(); a != nil {
		return *a
	}
	return Arguments{}
}

// Definition describes the service.
func (s *Service) Definition() service.Definition {
	return service.Definition{
		Name:  "ui",
		Block: "ui",
		NewConfig: func() any {
			a := new(Arguments)
			a.SetToDefault()
			return a
		},
		Doc: component.Doc{
			Summary: "Configures what the web UI and API clients may do.\n\nThe block applies to everyone who uses weir's port, with any credentials. It does not apply to the control socket, which the command line uses.",
			Args: map[string]string{
				"live_data": "Whether records, what scripts keep of them, and texts that may quote them can be seen: live records, the last batch, Why, the playground, the debugger, state, quarantine, the log, support bundles and the error messages of nodes.",
				"edit":      "Whether the playground can write scripts to disk, and whether a session of the web UI or a login can change something over a network, such as promote, roll back, replay or reload. On the machine that weir runs on, and with the token, only writing to disk needs it.",
			},
			Example: "ui {\n  live_data = true\n  edit      = true\n}\n",
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
	a := *config.(*Arguments)
	s.allowed.Store(&a)
	return nil
}

// Data returns nil: components do not use the service.
func (s *Service) Data() any { return nil }

var _ service.Service = (*Service)(nil)
