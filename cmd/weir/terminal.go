package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/weir-run/weir/engine/config"
)

// terminal is where weir talks to people: answers go to out, everything else
// to err. Colours only where each is a terminal and NO_COLOR is not set. What it
// is given to say may have text of scripts and of others in it, which does not
// reach the terminal as control characters.
//
// The err of weir run is a log unless it is a terminal: every line of it is then
// written by log, in one format.
type terminal struct {
	out, err           io.Writer
	outColor, errColor bool
	errTerminal        bool                // err is a terminal
	log                func() *slog.Logger // nil, or it returns nil: print for people
}

func newTerminal(out, err *os.File) *terminal {
	return &terminal{
		out: out, err: &lines{w: err}, outColor: colored(out), errColor: colored(err), errTerminal: term.IsTerminal(int(err.Fd())),
	}
}

func colored(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// logger returns the logger that writes to err, nil when err is for people.
func (t *terminal) logger() *slog.Logger {
	if t.log == nil {
		return nil
	}
	return t.log()
}

// errorf prints a mistake.
func (t *terminal) errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l := t.logger(); l != nil {
		l.Error(text)
		return
	}
	fmt.Fprintf(t.err, "%s %s\n", paint(t.errColor, "31;1", "weir:"), config.Printable(text))
}

// diagnostics prints the mistakes of a config, with the lines that they are in.
func (t *terminal) diagnostics(ds config.Diagnostics, files map[string]string) error {
	l := t.logger()
	if l == nil {
		return ds.Write(t.err, files, t.errColor)
	}
	for _, d := range ds {
		level := slog.LevelError
		if d.Severity == config.Warning {
			level = slog.LevelWarn
		}
		attrs := []any{"position", d.Span.String()}
		if d.Hint != "" {
			attrs = append(attrs, "hint", d.Hint)
		}
		if d.Detail != "" {
			attrs = append(attrs, "detail", d.Detail)
		}
		l.Log(context.Background(), level, d.Msg, attrs...)
	}
	return nil
}

// printStatus prints a line about the running process.
func (t *terminal) printStatus(word, text string) {
	if l := t.logger(); l != nil {
		l.Info(word + ": " + text)
		return
	}
	fmt.Fprintf(t.err, "%s %s\n", paint(t.errColor, "1", fmt.Sprintf("%-8s", word)), config.Printable(text))
}

// announce prints a line of the engine's about the running graph: green when it
// went well.
func (t *terminal) announce(line string) {
	if l := t.logger(); l != nil {
		level := slog.LevelInfo
		if bad(line) {
			level = slog.LevelError
		}
		l.Log(context.Background(), level, line)
		return
	}
	hue := "32"
	if bad(line) {
		hue = "31;1"
	}
	fmt.Fprintln(t.err, paint(t.errColor, hue, config.Printable(line)))
}

// bad reports whether a line of the engine's says that something went wrong.
func bad(line string) bool { return strings.HasPrefix(line, "cannot ") }

func paint(color bool, code, s string) string {
	if !color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// lines keeps lines of several writers whole: each Write is one.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
