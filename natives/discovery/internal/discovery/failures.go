package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// nothingFound is the message that Prometheus's refresh package logs if no update
// follows. Other errors concern a part of the next update.
const nothingFound = "Unable to refresh target groups"

// failures are the recent errors. Prometheus's discoverers only report them to
// their logger.
type failures struct {
	mu      sync.Mutex
	partial []string // errors since the last update
	last    string
	shown   string // the last logged error
	at      time.Time
}

// addError adds an error. It reports whether the error is new.
func (f *failures) addError(text string, part bool, now time.Time) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if part && !slices.Contains(f.partial, text) {
		f.partial = append(f.partial, text)
	}
	f.last, f.at = text, now
	news = f.shown != text
	f.shown = text
	return news
}

// takeErrors returns the errors for the current update, or "", and removes them.
func (f *failures) takeErrors() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	const most = 3
	texts := f.partial
	f.partial = nil
	if len(texts) == 0 {
		f.last, f.shown = "", ""
		return ""
	}
	if n := len(texts) - most; n > 0 {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}

// forget removes errors before then, and reports whether none are left.
func (f *failures) forget(then time.Time) (none bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.Before(then) {
		f.last, f.shown, f.partial = "", "", nil
	}
	return f.last == ""
}

func (f *failures) current() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// listener is a slog.Handler between a discoverer and the log of the node. It
// logs a repeated error only once.
type listener struct {
	slog.Handler
	failed func(text string, part bool) (news bool)
	deaf   *atomic.Bool // the discoverer was stopped: its messages are not logged
}

func (l listener) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || l.Handler.Enabled(ctx, level)
}

func (l listener) Handle(ctx context.Context, r slog.Record) error {
	if l.deaf.Load() {
		return nil
	}
	if r.Level >= slog.LevelError && !l.failed(text(r), r.Message != nothingFound) {
		return nil
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

func (l listener) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.Handler = l.Handler.WithAttrs(attrs)
	return l
}

func (l listener) WithGroup(name string) slog.Handler {
	l.Handler = l.Handler.WithGroup(name)
	return l
}

// text formats an error record: the message, then the error.
func text(r slog.Record) string {
	var about []string
	err := ""
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "err":
			err = a.Value.String()
		case a.Value.String() != "":
			about = append(about, fmt.Sprintf("%s %s", a.Key, a.Value))
		}
		return true
	})
	if err == "" {
		err = r.Message
	}
	if len(about) == 0 {
		return err
	}
	return strings.Join(about, " ") + ": " + err
}
