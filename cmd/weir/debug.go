package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/scripting/debug"
)

func debugCommand(t *terminal) *cobra.Command {
	var dir, where, listen string
	var adapter bool
	cmd := &cobra.Command{
		Use:   "debug NODE",
		Short: "Debug a copy of a running script with an editor",
		Long: `Debug the script of a node of the weir that runs with the storage path, with an editor
or another client of the Debug Adapter Protocol. Without --listen, weir reads the
messages of the client from the standard input and writes its own to the standard
output, for editors that start a debug adapter. With --listen, it waits for clients at
an address of this machine, one after another, until Ctrl-C. Any user of the machine
can connect to that address and read what the script reads. With --adapter, the editor
names the node and may set the options in its request: node, where and storagePath, as
in the .vscode/launch.json that 'weir new component' writes.

A copy of the script, with a copy of the node's state, gets the batches that arrive at
the node. While the copy is stopped at a breakpoint, the node goes on, and batches that
arrive meanwhile are not passed to the copy. With --where, it gets only batches with a
record for which an expression is true; 'weir help expr' describes expressions. What
the copy returns is shown and not sent. It cannot make requests or run programs. If the
script is reloaded, a copy of the new version continues.

The node must be a script that receives records and sends them on. The page about
writing components describes what is different in the copy.

The exit code is 0 when the session has ended, 1 if the node does not exist or cannot be
debugged, and 2 if no weir runs with the storage path.`,
		Example: `  weir debug http.paths.default --listen 127.0.0.1:4711
  weir debug logs.dedupe.app --where='line contains "error"' --listen 127.0.0.1:4711`,
		Args: func(cmd *cobra.Command, args []string) error {
			if adapter {
				if len(args) > 0 || cmd.Flags().Changed("listen") || cmd.Flags().Changed("where") {
					return errors.New("with --adapter, the editor names the node and the expression; leave out NODE, --where and --listen")
				}
				return nil
			}
			if len(args) != 1 {
				return errors.New("debug takes the name of one node")
			}
			if listen == "" {
				return nil
			}
			if a, err := netip.ParseAddrPort(listen); err != nil || !a.Addr().IsLoopback() {
				return fmt.Errorf("--listen must be an address of this machine with a port, such as 127.0.0.1:4711, not %q", listen)
			}
			return nil
		},
		ValidArgsFunction: scriptedNodes(&dir),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if adapter {
				return adaptDebug(ctx, dir, cmd.InOrStdin(), t.out)
			}
			path, err := debugPath(ctx, dir, args[0], where)
			if err != nil {
				return err
			}
			if listen != "" {
				return listenDebug(ctx, t, dir, path, listen)
			}
			err = relayDebug(ctx, dir, path, cmd.InOrStdin(), t.out)
			if ctx.Err() != nil {
				return nil
			}
			return err
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVar(&where, "where", "", "an expression that selects batches")
	cmd.Flags().StringVar(&listen, "listen", "", "address for clients, such as 127.0.0.1:4711 (default: the standard input and output)")
	cmd.Flags().BoolVar(&adapter, "adapter", false, "take the node and the expression from the request of the editor")
	return cmd
}

// debugPath returns the path of the session of a node, which must be a script of the
// running weir.
func debugPath(ctx context.Context, dir, node, where string) (string, error) {
	if err := checkStorage(dir); err != nil {
		return "", err
	}
	if err := checkScripted(ctx, dir, node, "cannot be debugged"); err != nil {
		return "", err
	}
	u := url.URL{Path: "/api/v0/control/" + node + "/debug"}
	if where != "" {
		u.RawQuery = url.Values{"where": {where}}.Encode()
	}
	return u.String(), nil
}

// adaptDebug serves a client that names the node.
func adaptDebug(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	body := pipeFrom(in)
	defer body.Close()
	defer context.AfterFunc(ctx, func() { body.Close() })()
	err := debug.Adapt(body, out, func(target debug.Target, body io.Reader) (io.ReadCloser, error) {
		dir := cmp.Or(target.Storage, dir)
		path, err := debugPath(ctx, dir, target.Node, target.Where)
		if err != nil {
			return nil, err
		}
		return ask(ctx, dir, http.MethodPost, path, "", body)
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// pipeFrom returns a reader of in that can be closed while nothing arrives. It leaves a
// goroutine that waits for in.
func pipeFrom(in io.Reader) *io.PipeReader {
	body, feed := io.Pipe()
	go func() {
		_, err := io.Copy(feed, in)
		feed.CloseWithError(err)
	}()
	return body
}

// listenDebug serves one client after another until ctx ends, or a client cannot debug
// the node.
func listenDebug(ctx context.Context, t *terminal, dir, path, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot wait for a debugger: %w", err)
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer l.Close()
	t.printStatus("listening", fmt.Sprintf("at %s for a debugger; ctrl-C ends", l.Addr()))
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot wait for a debugger: %w", err)
		}
		t.printStatus("debugging", "a debugger has connected")
		err = relayDebug(ctx, dir, path, conn, conn)
		conn.Close()
		if err != nil && ctx.Err() == nil && !errors.Is(err, errRelay) {
			return err
		}
		t.printStatus("ended", "the session has ended")
	}
}

// errRelay is wrapped by errors of a session that had begun.
var errRelay = errors.New("cannot pass on the messages of the debugger")

// relayDebug passes the messages of a client to weir, and those of weir to the client,
// until one of them ends. It may leave a goroutine that waits for in.
func relayDebug(ctx context.Context, dir, path string, in io.Reader, out io.Writer) error {
	body := pipeFrom(in)
	defer body.Close()
	answer, err := ask(ctx, dir, http.MethodPost, path, "", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if _, err := io.Copy(out, answer); err != nil && ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errRelay, err)
	}
	return nil
}
