package main

import (
	"fmt"
	"io"
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
type terminal struct {
	out, err           io.Writer
	outColor, errColor bool
}

func newTerminal(out, err *os.File) *terminal {
	return &terminal{out: out, err: &lines{w: err}, outColor: colored(out), errColor: colored(err)}
}

func colored(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// errorf prints a mistake.
func (t *terminal) errorf(format string, args ...any) {
	fmt.Fprintf(t.err, "%s %s\n", paint(t.errColor, "31;1", "weir:"), config.Printable(fmt.Sprintf(format, args...)))
}

// say prints a line about the running process.
func (t *terminal) say(word, text string) {
	fmt.Fprintf(t.err, "%s %s\n", paint(t.errColor, "1", fmt.Sprintf("%-8s", word)), config.Printable(text))
}

// announce prints a line of the engine's about the running graph: green when it
// went well.
func (t *terminal) announce(line string) {
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
