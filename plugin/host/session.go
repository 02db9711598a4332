package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// The limits of a stream. A plugin that exceeds them is ended.
const (
	maxCalls   = 256             // calls in progress
	maxSends   = 1024            // batches that the plugin sends at the same time
	maxOutputs = link.MaxMessage // bytes of the outputs of one call
	maxLogs    = 1000            // log records per second; more are counted
)

// session is the stream of a node to a process.
type session struct {
	c      *Component
	proc   *process
	number uint64
	stream grpc.BidiStreamingClient[protocol.ToPlugin, protocol.ToWeir]
	// ctx is the context of the stream. Deliveries of batches end with it. It is stored
	// because messages of the plugin arrive without a caller.
	ctx    context.Context
	cancel context.CancelFunc
	opened *protocol.Opened

	sending sync.Mutex // serialises encode and stream.Send
	enc     *link.Encoder
	dec     *batch.FrameDecoder // of the receiving loop
	acks    link.Acks

	slots   chan struct{} // of calls in progress
	lastID  atomic.Uint64
	ended   chan error // the result of Run in the plugin
	updated chan *protocol.Updated
	done    chan struct{}  // closed when the stream has ended and nothing of it runs any more
	wg      sync.WaitGroup // of deliveries
	err     error          // why the stream has ended; after done

	mu        sync.Mutex
	calls     map[uint64]*call
	sends     map[uint64]context.CancelFunc
	partials  map[uint64]*flow.Partial // by ID of the Send
	replies   map[uint64]chan *protocol.Reply
	responses map[uint64]chan *protocol.Response
	receivers map[uint32]*flow.Receiver
	numbers   map[*flow.Receiver]uint32
	theirs    map[uint64]uint64 // Sources of the plugin, with ours
	ours      map[uint64]bool   // Sources that were sent
	logs      rate
}

// call is a batch that the plugin processes.
type call struct {
	of      batch.Origin
	ack     *batch.Ack
	outputs []flow.List // of the receiving loop, until answer
	size    int
	answer  chan error // gets one value
}

// errLost is the error of calls whose process has ended. The source sends their batches
// again.
var errLost = errors.New("the plugin has ended before it answered; the batch was not accepted")

// connect opens a stream and creates the component in the plugin.
func (c *Component) connect(ctx context.Context, args any, previous *Component) (*session, error) {
	proc, err := c.kind.program.acquire(ctx)
	if err != nil {
		return nil, err
	}
	// The stream lives longer than the call that opens it; close ends it.
	sctx, cancel := context.WithCancel(context.Background())
	s := &session{
		c: c, proc: proc, number: c.kind.program.streams.Add(1), ctx: sctx, cancel: cancel,
		enc: link.NewEncoder(link.Dictionary), dec: batch.NewFrameDecoder(link.Dictionary), slots: make(chan struct{}, maxCalls),
		ended: make(chan error, 1), updated: make(chan *protocol.Updated, 1), done: make(chan struct{}),
		calls: map[uint64]*call{}, sends: map[uint64]context.CancelFunc{}, partials: map[uint64]*flow.Partial{},
		replies: map[uint64]chan *protocol.Reply{}, responses: map[uint64]chan *protocol.Response{},
		receivers: map[uint32]*flow.Receiver{}, numbers: map[*flow.Receiver]uint32{},
		theirs: map[uint64]uint64{}, ours: map[uint64]bool{},
	}
	open, err := s.open(args)
	if err == nil {
		s.handOver(open, previous)
		err = s.start(ctx, open)
	}
	if err != nil {
		cancel()
		proc.release()
		return nil, err
	}
	go s.receive()
	return s, nil
}

func (s *session) open(args any) (*protocol.Open, error) {
	arguments, err := s.arguments(args)
	o := &s.c.o
	return &protocol.Open{
		Component: s.c.kind.name, Node: o.ID, Where: o.Where(), Arguments: arguments, DataPath: o.DataPath, StoragePath: o.StoragePath,
		UserAgent: o.UserAgent, Calls: maxCalls, DictionaryLimit: link.Dictionary, Stream: s.number,
	}, err
}

// handOver adds the component that the new one replaces, or its state if it is in
// another process.
func (s *session) handOver(open *protocol.Open, previous *Component) {
	if previous == nil {
		return
	}
	old := previous.current()
	switch {
	case old == nil:
	case old.proc == s.proc:
		open.Previous = old.number
	case old.opened.State:
		state, err := old.ask(protocol.Ask_STATE, askTimeout)
		if err != nil {
			s.c.o.Logger.Warn("the new version of the plugin starts without the state of the previous one", "err", err)
			return
		}
		open.State, open.HasState = state, true
	}
}

// start sends Open and waits for the answer.
func (s *session) start(ctx context.Context, open *protocol.Open) (err error) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	if s.stream, err = s.proc.service.Node(s.ctx); err != nil {
		return s.lost(err)
	}
	if err := s.stream.Send(&protocol.ToPlugin{Message: &protocol.ToPlugin_Open{Open: open}}); err != nil {
		return s.lost(err)
	}
	for {
		m, err := s.stream.Recv()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("cannot create the component: the plugin has not answered: %w", context.Cause(ctx))
		case err != nil:
			return s.lost(err)
		}
		if s.opened = m.GetOpened(); s.opened == nil {
			if err := s.process(m); err != nil { // exports, health and log records of Build
				return s.proc.fail(err)
			}
			continue
		}
		if s.opened.Error != "" {
			return errors.New(s.opened.Error)
		}
		return nil
	}
}

// lost returns the error for a stream that has ended, and ends the process: it has ended
// itself, or does not follow the protocol.
func (s *session) lost(err error) error {
	if text := status.Convert(err).Message(); text != "" {
		err = errors.New(text)
	}
	return s.proc.fail(fmt.Errorf("the plugin %s has failed: %w", s.proc.p.path, err))
}

// arguments converts decoded arguments.
func (s *session) arguments(args any) (*protocol.Arguments, error) {
	return s.c.kind.args.encode(args, func(r *flow.Receiver) uint32 {
		s.mu.Lock()
		defer s.mu.Unlock()
		n, ok := s.numbers[r]
		if !ok {
			n = uint32(len(s.numbers) + 1)
			s.numbers[r], s.receivers[n] = n, r
		}
		return n
	})
}

// send sends a message.
func (s *session) send(m *protocol.ToPlugin) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.Send(m)
}

// trySend sends a message. If that fails, the receiving loop ends.
func (s *session) trySend(m *protocol.ToPlugin) { _ = s.send(m) }

// close ends the stream and waits until nothing of it runs any more. The component must
// have ended, or the process must be ended.
func (s *session) close() {
	s.sending.Lock()
	_ = s.stream.CloseSend()
	s.sending.Unlock()
	t := time.AfterFunc(askTimeout, s.cancel)
	<-s.done
	t.Stop()
	s.proc.release()
}

// receive processes the messages of the plugin until the stream ends.
func (s *session) receive() {
	var err error
	for err == nil {
		var m *protocol.ToWeir
		if m, err = s.stream.Recv(); err == nil {
			err = s.process(m)
		}
	}
	if !errors.Is(err, io.EOF) {
		err = s.lost(err) // or the reason why weir has ended the process
	}
	s.cancel()
	s.mu.Lock()
	s.err = err
	for id, c := range s.calls {
		delete(s.calls, id)
		c.answer <- errLost
	}
	for id, c := range s.replies {
		delete(s.replies, id)
		close(c)
	}
	for id, c := range s.responses {
		delete(s.responses, id)
		close(c)
	}
	for _, cancel := range s.sends {
		cancel()
	}
	s.mu.Unlock()
	s.wg.Wait()
	s.dec.Close()
	close(s.done)
}

// process handles one message. It does not block. The error means that the plugin does
// not follow the protocol.
func (s *session) process(in *protocol.ToWeir) error {
	switch m := in.GetMessage().(type) {
	case *protocol.ToWeir_Answer:
		return s.answered(m.Answer)
	case *protocol.ToWeir_Output:
		return s.output(m.Output)
	case *protocol.ToWeir_Send:
		return s.sent(m.Send)
	case *protocol.ToWeir_Cancel:
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := s.sends[m.Cancel.Id]; cancel != nil {
			cancel()
		}
	case *protocol.ToWeir_Forget:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.partials, m.Forget.Id)
	case *protocol.ToWeir_Acked:
		s.acks.Acked(m.Acked.Id)
	case *protocol.ToWeir_Flush:
		s.acks.Flush(m.Flush.Id)
	case *protocol.ToWeir_Ended:
		var err error
		if m.Ended.Error != "" {
			err = errors.New(m.Ended.Error)
		}
		select {
		case s.ended <- err:
		default: // a panic in a call was first
		}
	case *protocol.ToWeir_Updated:
		select {
		case s.updated <- m.Updated:
		default:
			return errors.New("it has answered an Update that was not sent")
		}
	case *protocol.ToWeir_Reply:
		s.mu.Lock()
		defer s.mu.Unlock()
		if c := s.replies[m.Reply.Id]; c != nil {
			delete(s.replies, m.Reply.Id)
			c <- m.Reply
		}
	case *protocol.ToWeir_Response:
		s.mu.Lock()
		defer s.mu.Unlock()
		if c := s.responses[m.Response.Id]; c != nil {
			delete(s.responses, m.Response.Id)
			c <- m.Response
		}
	case *protocol.ToWeir_Export:
		exports, err := s.c.kind.exports.exports(m.Export.Values)
		if err != nil {
			return err
		}
		s.c.o.Export(exports)
	case *protocol.ToWeir_Health:
		return s.health(m.Health)
	case *protocol.ToWeir_Log:
		s.log(m.Log)
	case *protocol.ToWeir_Counts:
		s.count(m.Counts)
	default:
		return fmt.Errorf("it has sent a message that this version of weir does not know")
	}
	return nil
}

func (s *session) health(h *protocol.Health) error {
	if h.State > uint32(component.Exited) || h.Reason != "" && !identifier.MatchString(h.Reason) {
		return fmt.Errorf("it has sent a health with state %d and reason %q", h.State, h.Reason)
	}
	s.c.o.Health(component.Health{State: component.HealthState(h.State), Message: h.Message, Reason: h.Reason})
	return nil
}

// log logs a record of the component.
func (s *session) log(l *protocol.Log) {
	level := slog.Level(l.Level)
	if !s.c.o.Logger.Enabled(s.ctx, level) {
		return
	}
	n, omitted := s.logs.allow(time.Now(), maxLogs)
	if omitted > 0 {
		s.c.o.Logger.Warn("the plugin logs too much; records were omitted", "omitted", omitted)
	}
	if !n {
		return
	}
	attrs := make([]slog.Attr, 0, len(l.Attributes))
	for _, p := range l.Attributes {
		attrs = append(attrs, slog.String(p.GetKey(), component.Shorten(p.GetValue())))
	}
	s.c.o.Logger.LogAttrs(s.ctx, level, component.Shorten(l.Message), attrs...)
}

func (s *session) count(c *protocol.Counts) {
	st := s.c.o.Stats
	if s.c.kind.sends == 0 {
		st.CountOut(batch.SignalMetrics, int(c.SamplesOut))
		st.CountOut(batch.SignalLogs, int(c.LinesOut))
	}
	for reason, n := range c.SamplesDropped {
		st.Drop(known(reason), int(n))
	}
	for reason, n := range c.LinesDropped {
		st.DropLines(known(reason), int(n))
	}
}

// known returns a drop reason that can be the value of a label.
func known(reason string) string {
	if len(reason) > 100 || !identifier.MatchString(reason) {
		return "plugin"
	}
	return reason
}

// rate limits events per second.
type rate struct {
	second     int64
	n, omitted int
}

// allow reports whether an event is allowed, and once per second how many were not.
func (r *rate) allow(now time.Time, limit int) (ok bool, omitted int) {
	if s := now.Unix(); s != r.second {
		omitted = r.omitted
		*r = rate{second: s}
	}
	if r.n >= limit {
		r.omitted++
		return false, omitted
	}
	r.n++
	return true, omitted
}

// ask asks the plugin and waits for the answer.
func (s *session) ask(what protocol.Ask_What, timeout time.Duration) ([]byte, error) {
	id, c := s.lastID.Add(1), make(chan *protocol.Reply, 1)
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, errLost
	}
	s.replies[id] = c
	s.mu.Unlock()
	s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Ask{Ask: &protocol.Ask{Id: id, What: what}}})
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case r, ok := <-c:
		switch {
		case !ok:
			return nil, errLost
		case r.Error != "":
			return nil, errors.New(r.Error)
		}
		return r.Data, nil
	case <-t.C:
		s.mu.Lock()
		delete(s.replies, id)
		s.mu.Unlock()
		return nil, fmt.Errorf("the plugin has not answered within %s", timeout)
	}
}
