package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weir/top"
	"github.com/weir-run/weir/engine/config"
	weirhttp "github.com/weir-run/weir/engine/service/http"
)

// topOptions are the flags of weir top.
type topOptions struct {
	dir      string
	interval time.Duration
	view     top.View
	once     bool
	json     bool
}

func topCommand(t *terminal) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show which nodes of a running weir use CPU time and data",
		Long: `Show the nodes of the weir that runs with the storage path, and update the screen at
an interval. The nodes that use the most CPU time are first. Nodes inside a module or
a foreach have the names of the blocks around them. A node that is not healthy has !
before its name.

  CPU%    CPU time in the node and the goroutines that it started, without the nodes
          that it sends to; 100 is one core
  CALL/s  batches that arrive, or batches that a source sends
  REC/s   samples and log lines that arrive, or that a source sends
  BYTE/s  estimated size of these records
  DROP/s  records that the node removed, for example because of a rule
  LOST/s  records that could not be delivered and are gone
  ERR/s   batches that the node did not accept; the sender may try again
  QUEUE   records that wait in the journal of a sink
  AGE     how long the oldest of them has waited
  OUT/s   records that the node sends, once for each receiver

Names are shortened and columns on the right are left out if the screen is narrow.
CPU time, calls, errors and bytes are measured only while a client is connected. The
page about operating weir describes the columns.

Keys: q ends the program, the left and right arrows choose the column to sort by, r
reverses the order, / filters by a part of the name, and the arrows scroll.

With --once, or if the output is not a terminal, it measures for one interval and
prints a table; with --once --json, an object with the rates.

The exit code is 2 if no weir runs with the storage path, and 1 for other errors. If
weir is stopped, the screen waits until it runs again.`,
		Example: `  weir top
  weir top --sort=queue --interval=5s
  weir top --once --limit=10
  weir top --once --json | jq '.nodes[] | select(.lost_per_second > 0)'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return errors.New("top takes no arguments; --filter shows only nodes whose name contains a text")
			case o.interval < 500*time.Millisecond || o.interval > time.Minute:
				return fmt.Errorf("--interval must be from 500ms to 1m, not %s", o.interval)
			case o.json && !o.once:
				return errors.New("--json needs --once")
			}
			return o.view.Check()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			if err := checkStorage(o.dir); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if !o.once && t.screen {
				return o.follow(ctx, t)
			}
			if !o.once {
				t.printStatus("top", "the output is not a terminal, so it prints one table as with --once")
			}
			return o.printOnce(ctx, t)
		}),
	}
	storageFlag(cmd.Flags(), &o.dir)
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "how often to measure, from 500ms to 1m")
	cmd.Flags().StringVar(&o.view.Sort, "sort", "cpu", "column to sort by: "+strings.Join(top.Sorts(), ", "))
	cmd.Flags().StringVar(&o.view.Filter, "filter", "", "show only nodes whose name contains this text")
	cmd.Flags().IntVar(&o.view.Limit, "limit", 0, "show at most this number of nodes; 0 means no limit")
	cmd.Flags().BoolVar(&o.once, "once", false, "print a table of one interval and exit")
	cmd.Flags().BoolVar(&o.json, "json", false, "with --once, print JSON")
	return cmd
}

// read passes the lines of weir's response to each until it ends. lines is the number of
// lines; 0 means no limit. The error is never nil if there is no limit.
func (o *topOptions) read(ctx context.Context, lines int, each func(weirhttp.Usage)) error {
	q := url.Values{"interval": {o.interval.String()}}
	if lines > 0 {
		q.Set("lines", strconv.Itoa(lines))
	}
	answer, err := ask(ctx, o.dir, http.MethodGet, "/api/v0/top?"+q.Encode(), "", nil)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound {
		return errors.New("the running weir is too old for weir top")
	}
	if err != nil {
		return err
	}
	defer answer.Close()
	in := json.NewDecoder(answer)
	for n := 0; lines == 0 || n < lines; n++ {
		var u weirhttp.Usage
		if err := in.Decode(&u); err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the connection to weir was closed")
		} else if err != nil {
			return fmt.Errorf("cannot read the response of weir: %w", err)
		}
		if u.Error != "" {
			return errors.New(config.Printable(u.Error))
		}
		each(u)
	}
	return nil
}

// printOnce prints the rates of one interval.
func (o *topOptions) printOnce(ctx context.Context, t *terminal) error {
	var got []weirhttp.Usage
	if err := o.read(ctx, 2, func(u weirhttp.Usage) { got = append(got, u) }); err != nil {
		return err
	}
	rates := top.Between(got[0], got[1])
	if !o.json {
		return top.Write(t.out, rates, o.view)
	}
	rates.Nodes = o.view.Nodes(rates.Nodes)
	text, err := json.MarshalIndent(rates, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the rates: %w", err)
	}
	_, err = fmt.Fprintln(t.out, string(text))
	return err
}

// retryTop is how often weir top looks for a weir that was stopped.
const retryTop = time.Second

// follow shows the screen until the user ends it. It connects again if weir is started
// again.
func (o *topOptions) follow(ctx context.Context, t *terminal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := tea.NewProgram(top.NewScreen(o.view, t.outColor), tea.WithContext(ctx), tea.WithOutput(t.out), tea.WithoutSignalHandler())
	connected := false
	var first error // why the first connection failed
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			err := o.read(ctx, 0, func(u weirhttp.Usage) {
				connected = true
				p.Send(u)
			})
			if !connected {
				first = err
				p.Quit()
				return
			}
			p.Send(top.Disconnected{Reason: "weir does not answer, waiting for it: " + firstLine(err)})
			select {
			case <-time.After(retryTop):
			case <-ctx.Done():
				return
			}
		}
	}()
	_, err := p.Run()
	interrupted := ctx.Err() != nil
	cancel()
	<-done
	switch {
	case first != nil && !interrupted:
		return first
	case err != nil && !interrupted:
		return fmt.Errorf("cannot show the screen: %w", err)
	}
	return nil
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
