package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// The limits of a process.
const (
	startTimeout = 10 * time.Second // until it has started and described its components
	idleTimeout  = 10 * time.Second // without a node, until it is ended
	minRestart   = 100 * time.Millisecond
	maxRestart   = 30 * time.Second
	maxUseful    = 100 * time.Millisecond // instead of maxRestart, if the process has processed batches
	goodRun      = time.Second            // after which the next restart does not wait
)

// program is one version of a plugin's binary.
type program struct {
	c      *Catalog
	path   string
	digest string // SHA-256 of the binary, in hexadecimal
	// The size and the time of the file when it was read.
	size     int64
	modified time.Time

	desc *protocol.Description // nil if err is set
	regs map[string]*kind
	err  error // why it cannot be used

	starts atomic.Uint64

	mu       sync.Mutex // held while the process starts
	proc     *process
	failures int       // starts that did not run well, in a row
	notUntil time.Time // of the next start
	streams  atomic.Uint64
}

// process is a running process of a program.
type process struct {
	p       *program
	client  *goplugin.Client
	service protocol.PluginClient
	cmd     *exec.Cmd
	started time.Time

	dead chan struct{} // closed when it has ended, or must not be used any more

	mu     sync.Mutex
	why    error
	users  int
	idle   *time.Timer
	killed sync.WaitGroup
	useful atomic.Bool // it has processed a batch
}

// digestOf returns the SHA-256 of a file, in hexadecimal.
func digestOf(path string) (string, error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// acquire returns a running process, and starts one if there is none. It waits for the
// back-off after a failure. release must be called.
func (p *program) acquire(ctx context.Context) (*process, error) {
	for {
		p.mu.Lock()
		if proc := p.proc; proc != nil && proc.use() {
			p.mu.Unlock()
			return proc, nil
		}
		wait := time.Until(p.notUntil)
		if wait <= 0 {
			proc, err := p.start()
			p.mu.Unlock()
			return proc, err
		}
		p.mu.Unlock()
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// start starts a process, under p.mu.
func (p *program) start() (*process, error) {
	if p.c.isClosed() {
		return nil, errors.New("weir is stopping")
	}
	if fi, err := files.Stat(p.path); err != nil {
		return nil, p.failed(fmt.Errorf("cannot read the plugin: %w", err))
	} else if fi.Size() == p.size && fi.ModTime().Equal(p.modified) {
		// It has the digest, and reading it would take as long as the start.
	} else if digest, err := digestOf(p.path); err != nil {
		return nil, p.failed(fmt.Errorf("cannot read the plugin: %w", err))
	} else if digest != p.digest {
		return nil, p.failed(fmt.Errorf("the file %s has changed: it has the SHA-256 %s, and %s is expected until weir has loaded the new version", p.path, digest, p.digest))
	}
	proc := &process{p: p, dead: make(chan struct{}), started: time.Now(), users: 1}
	proc.cmd = exec.Command(p.path)
	proc.cmd.Env = append([]string(nil), p.c.o.Env...)
	ownGroup(proc.cmd)
	log := p.c.o.Logger.With("plugin", p.path)
	proc.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  link.Handshake,
		Plugins:          goplugin.PluginSet{link.Name: &client{proc: proc}},
		Cmd:              proc.cmd,
		SkipHostEnv:      true,
		AutoMTLS:         true,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		StartTimeout:     startTimeout,
		Logger:           hclog.NewNullLogger(),
		Stderr:           &lines{log: log},
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(link.MaxMessage), grpc.MaxCallSendMsgSize(link.MaxMessage))},
	})
	protocolClient, err := proc.client.Client()
	if err == nil {
		_, err = protocolClient.Dispense(link.Name)
	}
	if err != nil {
		proc.client.Kill()
		return nil, p.failed(fmt.Errorf("cannot start the plugin %s: %w", p.path, err))
	}
	p.starts.Add(1)
	p.proc = proc
	p.c.started(proc)
	log.Info("plugin started", "pid", proc.cmd.Process.Pid)
	return proc, nil
}

// failed delays the next start, under p.mu.
func (p *program) failed(err error) error {
	p.notUntil = time.Now().Add(min(minRestart<<min(p.failures, 10), maxRestart))
	p.failures++
	return err
}

// ended is called when a process has ended without being told to.
func (p *program) ended(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != proc {
		return
	}
	p.proc = nil
	if time.Since(proc.started) >= goodRun {
		p.failures = 0
	}
	if p.failures > 0 {
		_ = p.failed(nil)
	} else {
		p.failures = 1 // the first restart does not wait
	}
	if soon := time.Now().Add(maxUseful); proc.useful.Load() && p.notUntil.After(soon) {
		p.notUntil = soon
	}
}

// use counts a user of the process. It returns false if the process has ended.
func (p *process) use() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.dead:
		return false
	default:
	}
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	p.users++
	return true
}

// release ends a use of the process. A process without users is ended after a while.
func (p *process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users == 0 {
		p.idle = time.AfterFunc(idleTimeout, func() {
			p.mu.Lock()
			unused := p.users == 0
			p.mu.Unlock()
			if unused {
				p.end(errIdle, false)
			}
		})
	}
}

var (
	errIdle    = errors.New("no node uses the plugin")
	errStopped = errors.New("weir is stopping")
)

// end ends the process, at once if it has failed, and returns the reason, which is that
// of the first call.
func (p *process) end(why error, failed bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why != nil {
		return p.why
	}
	p.why = why
	close(p.dead)
	if p.idle != nil {
		p.idle.Stop()
	}
	p.killed.Go(func() {
		if failed {
			_ = p.cmd.Process.Kill()
		}
		p.client.Kill()
		p.p.c.ended(p)
	})
	return why
}

// fail ends a process that has failed.
func (p *process) fail(why error) error {
	why = p.end(why, true)
	p.p.ended(p)
	return why
}

// client connects to the service in a process.
type client struct {
	goplugin.NetRPCUnsupportedPlugin
	proc *process
}

// GRPCServer is not used in weir.
func (c *client) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("BUG: weir is not a plugin")
}

// GRPCClient is called when the process has started. ctx ends with the process.
func (c *client) GRPCClient(ctx context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	c.proc.service = protocol.NewPluginClient(conn)
	c.proc.killed.Go(func() {
		select {
		case <-ctx.Done():
			_ = c.proc.fail(errors.New("the process has ended"))
		case <-c.proc.dead:
		}
	})
	return c.proc.service, nil
}

// lines logs the standard error of a plugin, line by line.
type lines struct {
	log  *slog.Logger
	rest []byte
}

// Write logs the complete lines.
func (l *lines) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' {
			if len(l.rest) < 8<<10 {
				l.rest = append(l.rest, c)
			}
			continue
		}
		if len(l.rest) > 0 {
			l.log.Info("plugin wrote to its standard error", "line", string(l.rest))
		}
		l.rest = l.rest[:0]
	}
	return len(p), nil
}
