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

// terminal is the interface to the user: results go to out, everything else to
// err. Each uses colours only if it is a terminal and NO_COLOR is not set.
// Messages may contain text from scripts and other untrusted sources, so control
// characters are not written to the terminal.
//
// In weir run, err is a log unless it is a terminal: log then writes each
// message, in one format. On a terminal, kept adds the messages to the last lines of
// the log, which the web UI shows.
type terminal struct {
	out, err           io.Writer
	outColor, errColor bool
	errTerminal        bool                // err is a terminal
	screen             bool                // out and the standard input are a terminal that can show a screen
	log                func() *slog.Logger // if it is nil or returns nil, messages are printed as text
	kept               *slog.Logger        // gets messages that are printed as text; may be nil
}

func newTerminal(out, err *os.File) *terminal {
	return &terminal{
		out: out, err: &lines{w: err}, outColor: colored(out), errColor: colored(err), errTerminal: term.IsTerminal(int(err.Fd())),
		screen: os.Getenv("TERM") != "dumb" && term.IsTerminal(int(out.Fd())) && term.IsTerminal(int(os.Stdin.Fd())),
	}
}

func colored(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// logger returns the logger that writes to err, or nil if err is not a log.
func (t *terminal) logger() *slog.Logger {
	if t.log == nil {
		return nil
	}
	return t.log()
}

// keep adds a message that is printed as text to the last lines of the log.
func (t *terminal) keep(level slog.Level, text string) {
	if t.kept != nil {
		t.kept.Log(context.Background(), level, text)
	}
}

// errorf prints a mistake.
func (t *terminal) errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l := t.logger(); l != nil {
		l.Error(text)
		return
	}
	t.keep(slog.LevelError, text)
	fmt.Fprintf(t.err, "%s %s\n", paint(t.errColor, "31;1", "weir:"), config.Printable(text))
}

// diagnostics prints the mistakes of a config with their source lines.
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
	t.keep(slog.LevelInfo, word+": "+text)
	t.printLine(word, text)
}

// printLine prints a line for people, which is not in the log.
func (t *terminal) printLine(word, text string) {
	fmt.Fprintf(t.err, "%s %s\n", paint(t.errColor, "1", fmt.Sprintf("%-8s", word)), config.Printable(text))
}

// announce prints a line of the engine about the running graph. The line is green
// unless it reports an error.
func (t *terminal) announce(line string) {
	level, hue := slog.LevelInfo, "32"
	if bad(line) {
		level, hue = slog.LevelError, "31;1"
	}
	if l := t.logger(); l != nil {
		l.Log(context.Background(), level, line)
		return
	}
	t.keep(level, line)
	fmt.Fprintln(t.err, paint(t.errColor, hue, config.Printable(line)))
}

// bad reports whether a line of the engine reports an error.
func bad(line string) bool { return strings.HasPrefix(line, "cannot ") }

func paint(color bool, code, s string) string {
	if !color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// lines keeps the lines of several writers separate: each Write is one line.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
