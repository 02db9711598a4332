package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// announcement precedes the URL on the standard output of the child process.
const announcement = "sandbox listens on "

// outOfOrder is how late a sample may arrive. A backlog is sent together with new
// samples, and the sandbox may have been down for hours.
const outOfOrder = 24 * time.Hour

// Options are the settings of a sandbox.
type Options struct {
	// ListenAddr is the TCP address. If its port is in use, a free one is used.
	ListenAddr string
	// Dir is the parent of the temporary directory; "" means that of the system.
	Dir string
	// Logger logs the messages of Prometheus's parts.
	Logger *slog.Logger
}

// Serve runs a sandbox until ctx ends or in is closed. When it listens, it writes
// a line with its URL to out. It removes the directory before it returns.
func Serve(ctx context.Context, o Options, in io.Reader, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "weir-sandbox-")
	if err != nil {
		return fmt.Errorf("cannot make the sandbox's directory: %w", err)
	}
	defer func() {
		if e := os.RemoveAll(dir); e != nil {
			err = errors.Join(err, fmt.Errorf("cannot remove the sandbox's directory: %w", e))
		}
	}()

	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	opts := tsdb.DefaultOptions()
	opts.OutOfOrderTimeWindow = outOfOrder.Milliseconds()
	opts.EnableExemplarStorage = true
	opts.MaxExemplars = 100_000
	db, err := tsdb.Open(filepath.Join(dir, "data"), o.Logger, reg, opts, nil)
	if err != nil {
		return fmt.Errorf("cannot open the sandbox's storage: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	engine := promql.NewEngine(promql.EngineOpts{
		Logger:               o.Logger,
		Reg:                  reg,
		MaxSamples:           maxSamples,
		Timeout:              2 * time.Minute,
		LookbackDelta:        5 * time.Minute,
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
	})
	defer engine.Close()

	l, err := listen(ctx, o.ListenAddr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; choose another address with --sandbox.listen-addr", o.ListenAddr, err)
	}
	r := route.New()
	a := &api{db: db, engine: engine, parser: parser.NewParser(parser.Options{}), reg: reg, logger: o.Logger}
	a.register(r.WithPrefix("/api/v1"))
	r.Get("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP)
	r.Get("/-/ready", ok)
	r.Get("/-/healthy", ok)
	r.Get("/", index)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { served <- srv.Serve(l) })
	// Nothing waits for this read: it ends with the process, like the standard
	// input.
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	fmt.Fprintf(out, "%shttp://%s\n", announcement, l.Addr())

	select {
	case <-ctx.Done():
		err = nil
	case err = <-served:
		err = fmt.Errorf("cannot serve the sandbox: %w", err)
	}
	_ = srv.Close() // do not wait for open queries
	wg.Wait()
	return err
}

// listen listens on addr, or on a free port of the same host if the port is in
// use.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err == nil {
		return l, nil
	}
	host, _, e := net.SplitHostPort(addr)
	if e != nil {
		return nil, err
	}
	if l, e := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0")); e == nil {
		return l, nil
	}
	return nil, err
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, pageHTML)
}
