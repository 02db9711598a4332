// Package plugin serves components as a plugin: a process of its own that weir starts.
// The main function of a plugin lists its components:
//
//	func main() {
//		plugin.Serve(plugin.Options{
//			Version:    "v1.0.0",
//			Licence:    "Apache-2.0",
//			Components: []component.Registration{scale.Registration},
//		})
//	}
//
// The same registrations can be compiled into weir. docs/writing-plugins.md describes
// the differences, and docs/plugin-protocol.md the protocol.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// Options are the options of Serve.
type Options struct {
	// Version is the version of the plugin, such as v1.0.0.
	Version string
	// Licence is an SPDX expression, such as Apache-2.0.
	Licence string
	// Components are the components of the plugin. The first part of each name, up to the
	// first dot, is the name of the plugin: acme for the file weir-plugin-acme.
	Components []component.Registration
}

// Keeper is a component that hands its state over to the component that replaces it in
// another process, for example when the binary of the plugin was replaced. Within one
// process, a component gets its predecessor in Build instead.
type Keeper interface {
	component.Component
	// State returns the state. It is called while the component runs and consumes.
	State() ([]byte, error)
	// SetState is called after Build and before Run with the result of State of the
	// predecessor, which may be a component of another version of the plugin.
	SetState(state []byte) error
}

// Serve serves the components until weir ends the process or exits itself. It prints an
// error if the process was not started by weir.
func Serve(o Options) {
	s, err := newServer(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	gone := make(chan struct{})
	defer close(gone)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: link.Handshake,
		Plugins:         goplugin.PluginSet{link.Name: &service{server: s}},
		Logger:          hclog.NewNullLogger(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			g := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(link.MaxMessage), grpc.MaxSendMsgSize(link.MaxMessage))...)
			go stopWithParent(g, gone)
			return g
		},
	})
}

// stopWithParent stops the server when the parent process has ended without ending this
// one, for example because it was killed.
func stopWithParent(g *grpc.Server, gone <-chan struct{}) {
	parent := os.Getppid()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if os.Getppid() != parent {
				g.Stop()
				return
			}
		case <-gone:
			return
		}
	}
}

// service registers the server with go-plugin.
type service struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the server.
func (s *service) GRPCServer(_ *goplugin.GRPCBroker, g *grpc.Server) error {
	protocol.RegisterPluginServer(g, s.server)
	return nil
}

// GRPCClient is not used in a plugin.
func (s *service) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("BUG: a plugin is not a client")
}

// server implements the protocol.
type server struct {
	protocol.UnimplementedPluginServer
	description *protocol.Description
	components  map[string]component.Registration

	mu    sync.Mutex
	nodes map[uint64]*node // by stream
}

func newServer(o Options) (*server, error) {
	s := &server{
		description: &protocol.Description{Version: o.Version, Licence: o.Licence},
		components:  map[string]component.Registration{}, nodes: map[uint64]*node{},
	}
	namespace := ""
	for _, r := range o.Components {
		c, err := describe(r)
		if err != nil {
			return nil, fmt.Errorf("cannot serve component %s: %w", r.Name, err)
		}
		first, _, dotted := strings.Cut(r.Name, ".")
		if !dotted {
			return nil, fmt.Errorf("cannot serve component %q: its name must have a namespace, such as acme.%s", r.Name, r.Name)
		}
		if namespace != "" && namespace != first {
			return nil, fmt.Errorf("cannot serve component %s together with components of %s: a plugin has one namespace", r.Name, namespace)
		}
		namespace = first
		if _, twice := s.components[r.Name]; twice {
			return nil, fmt.Errorf("cannot serve component %s: it is listed twice", r.Name)
		}
		s.components[r.Name] = r
		s.description.Components = append(s.description.Components, c)
	}
	if len(o.Components) == 0 {
		return nil, errors.New("cannot serve a plugin without components")
	}
	return s, nil
}

// Describe returns the components.
func (s *server) Describe(context.Context, *protocol.DescribeRequest) (*protocol.Description, error) {
	return s.description, nil
}

// Check checks arguments.
func (s *server) Check(_ context.Context, req *protocol.CheckRequest) (*protocol.CheckResponse, error) {
	r, ok := s.components[req.Component]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "there is no component %s", req.Component)
	}
	resp := new(protocol.CheckResponse)
	err := guard(func() error {
		_, resp.Problems = decode(r, req.Arguments, placeholders(req.Arguments))
		return nil
	})
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return resp, nil
}

// Node serves one node.
func (s *server) Node(stream grpc.BidiStreamingServer[protocol.ToPlugin, protocol.ToWeir]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open == nil {
		return status.Error(codes.InvalidArgument, "the first message must be Open")
	}
	r, ok := s.components[open.Component]
	if !ok {
		return status.Errorf(codes.NotFound, "there is no component %s", open.Component)
	}
	s.mu.Lock()
	previous := s.nodes[open.Previous]
	s.mu.Unlock()
	n := newNode(stream, r, open)
	opened, built := n.build(previous)
	if err := n.send(&protocol.ToWeir{Message: &protocol.ToWeir_Opened{Opened: opened}}); err != nil || !built {
		return err
	}
	s.mu.Lock()
	s.nodes[open.Stream] = n
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.nodes, open.Stream)
		s.mu.Unlock()
	}()
	err = n.serve()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
