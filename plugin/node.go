package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// node is one component behind its stream.
type node struct {
	reg    component.Registration
	open   *protocol.Open
	stream grpc.BidiStreamingServer[protocol.ToPlugin, protocol.ToWeir]

	sending sync.Mutex // serialises encode and stream.Send
	enc     *link.Encoder

	dec       *batch.FrameDecoder // of the receiving loop
	sources   sources
	acks      link.Acks
	receivers receivers
	stats     flow.Stats
	counted   counted
	registry  *prometheus.Registry
	comp      component.Component
	updates   sync.Mutex

	// run is the context of Run. It is stored because messages of weir arrive without a
	// caller.
	run       context.Context
	end       context.CancelCauseFunc
	wg        sync.WaitGroup // of all goroutines of the node
	lastID    atomic.Uint64
	mu        sync.Mutex
	calls     map[uint64]*call
	sends     map[uint64]chan *protocol.Answer
	refused   map[any]uint64 // Sends that were refused in part, by batch
	gone      bool           // the stream has ended
	runCalled bool
}

func newNode(stream grpc.BidiStreamingServer[protocol.ToPlugin, protocol.ToWeir], r component.Registration, open *protocol.Open) *node {
	limit := int(open.DictionaryLimit)
	n := &node{
		reg: r, open: open, stream: stream, enc: link.NewEncoder(limit), dec: batch.NewFrameDecoder(limit),
		registry: prometheus.NewRegistry(), calls: map[uint64]*call{}, sends: map[uint64]chan *protocol.Answer{}, refused: map[any]uint64{},
	}
	n.receivers.n = n
	n.run, n.end = context.WithCancelCause(stream.Context())
	return n
}

// build builds the component. ok is false if that failed.
func (n *node) build(previous *node) (opened *protocol.Opened, ok bool) {
	opened = new(protocol.Opened)
	args, problems := decode(n.reg, n.open.Arguments, n.receivers.set(n.open.Arguments))
	if opened.Error = failure(problems); opened.Error != "" {
		return opened, false
	}
	var prev component.Component
	if previous != nil {
		prev = previous.comp
	}
	err := guard(func() (err error) {
		if n.comp, err = n.reg.Build(n.options(), args, prev); err != nil {
			return err
		}
		if k, ok := n.comp.(Keeper); ok && n.open.HasState {
			return k.SetState(n.open.State)
		}
		return nil
	})
	if err != nil {
		opened.Error = err.Error()
		return opened, false
	}
	_, opened.Http = n.comp.(component.HTTPHandler)
	_, opened.Debug = n.comp.(component.Debugger)
	_, opened.Backlog = n.comp.(component.Queuer)
	_, opened.State = n.comp.(Keeper)
	return opened, true
}

func (n *node) options() component.Options {
	return component.Options{
		ID:          n.open.Node,
		Position:    func() string { return n.open.Where },
		Logger:      slog.New(&logHandler{n: n}),
		Registerer:  n.registry,
		DataPath:    n.open.DataPath,
		StoragePath: n.open.StoragePath,
		UserAgent:   n.open.UserAgent,
		Clock:       clock.System{},
		Stats:       &n.stats,
		Export:      n.export,
		Health:      n.health,
		Service: func(name string) (any, error) {
			return nil, fmt.Errorf("cannot use service %s: plugins do not support services", name)
		},
	}
}

func (n *node) export(exports any) {
	values, err := exported(exports)
	if err != nil {
		n.health(component.Health{State: component.Unhealthy, Message: err.Error(), Reason: "export"})
		return
	}
	n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Export{Export: &protocol.Export{Values: values}}})
}

func (n *node) health(h component.Health) {
	n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Health{Health: &protocol.Health{State: uint32(h.State), Message: h.Message, Reason: h.Reason}}})
}

// send sends a message.
func (n *node) send(m *protocol.ToWeir) error {
	n.sending.Lock()
	defer n.sending.Unlock()
	return n.stream.Send(m)
}

// trySend sends a message. If that fails, the receiving loop ends.
func (n *node) trySend(m *protocol.ToWeir) { _ = n.send(m) }

// sendBatch sends a message with a batch.
func (n *node) sendBatch(b link.Batch, ack bool, message func(*protocol.Batch) *protocol.ToWeir) error {
	of := b.Origin()
	of.Source = n.sources.remote(of.Source)
	b = b.WithOrigin(of)
	n.sending.Lock()
	defer n.sending.Unlock()
	return n.stream.Send(message(n.enc.Encode(b, ack)))
}

// serve processes the messages of weir until the stream ends.
func (n *node) serve() error {
	defer func() {
		n.end(component.ErrReplaced)
		n.mu.Lock()
		n.gone = true
		for id, c := range n.sends {
			c <- &protocol.Answer{Id: id, Error: errGone.Error()}
			delete(n.sends, id)
		}
		for _, c := range n.calls {
			c.cancel()
		}
		n.mu.Unlock()
		n.wg.Wait()
		n.dec.Close()
	}()
	for {
		m, err := n.stream.Recv()
		if err != nil {
			return err
		}
		if err := n.process(m); err != nil {
			return err
		}
	}
}

var errGone = errors.New("weir has closed the stream")

// process handles one message. It does not block.
func (n *node) process(in *protocol.ToPlugin) error {
	switch m := in.Message.(type) {
	case *protocol.ToPlugin_Call:
		return n.called(m.Call)
	case *protocol.ToPlugin_Cancel:
		n.mu.Lock()
		defer n.mu.Unlock()
		if c := n.calls[m.Cancel.Id]; c != nil {
			c.cancel()
		}
	case *protocol.ToPlugin_Answer:
		n.mu.Lock()
		defer n.mu.Unlock()
		if c := n.sends[m.Answer.Id]; c != nil {
			delete(n.sends, m.Answer.Id)
			c <- m.Answer
		}
	case *protocol.ToPlugin_Acked:
		n.acks.Acked(m.Acked.Id)
	case *protocol.ToPlugin_Flush:
		n.acks.Flush(m.Flush.Id)
	case *protocol.ToPlugin_Run:
		if n.runCalled {
			return status.Error(codes.InvalidArgument, "Run was sent twice")
		}
		n.runCalled = true
		n.wg.Go(n.runComponent)
	case *protocol.ToPlugin_Stop:
		n.end(stopCause(m.Stop.Cause))
	case *protocol.ToPlugin_Update:
		n.wg.Go(func() { n.update(m.Update) })
	case *protocol.ToPlugin_Ask:
		n.wg.Go(func() { n.reply(m.Ask) })
	case *protocol.ToPlugin_Request:
		n.wg.Go(func() { n.respond(m.Request) })
	default:
		return status.Errorf(codes.InvalidArgument, "there is no message %T in this version", in.Message)
	}
	return nil
}

func stopCause(c protocol.Stop_Cause) error {
	switch c {
	case protocol.Stop_REMOVED:
		return component.ErrRemoved
	case protocol.Stop_REPLACED:
		return component.ErrReplaced
	}
	return context.Canceled
}

// runComponent calls Run and sends its result.
func (n *node) runComponent() {
	stop := make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				n.count()
			case <-stop:
				return
			}
		}
	})
	err := guard(func() error { return n.comp.Run(n.run) })
	close(stop)
	counting.Wait()
	n.count()
	n.ended(err)
}

// ended reports the end of the component.
func (n *node) ended(err error) {
	ended := new(protocol.Ended)
	if err != nil {
		ended.Error = err.Error()
	}
	n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Ended{Ended: ended}})
}

// update calls Update.
func (n *node) update(u *protocol.Update) {
	n.updates.Lock()
	defer n.updates.Unlock()
	updated := new(protocol.Updated)
	if up, ok := n.comp.(component.Updater); !ok {
		updated.Rebuild = true
	} else {
		args, problems := decode(n.reg, u.Arguments, n.receivers.set(u.Arguments))
		if updated.Error = failure(problems); updated.Error == "" {
			err := guard(func() error { return up.Update(args) })
			if updated.Rebuild = errors.Is(err, component.ErrRebuild); err != nil && !updated.Rebuild {
				updated.Error = err.Error()
			}
		}
	}
	n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Updated{Updated: updated}})
}
