package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/config"
)

// counts is what a commit did, by node.
type counts struct {
	results map[result][]string // IDs, in the order of the graph
	added   []string
	removed []string
	nodes   int
	first   bool // the start
	read    bool // nodes have read changed files
	// broken are imports and other virtual blocks that have become unhealthy, or
	// that were unhealthy and have recovered.
	broken []string
}

// add takes over what a later commit did.
func (c *counts) add(d counts) {
	for r, ids := range d.results {
		for _, id := range ids {
			if r != untouched && !slices.Contains(c.results[r], id) {
				c.results[r] = append(c.results[r], id)
			}
		}
	}
	c.added = append(c.added, d.added...)
	c.removed = append(c.removed, d.removed...)
	c.broken = append(c.broken, d.broken...)
	c.nodes = d.nodes
}

// failures returns why nodes fail, by ID.
func (e *Engine) failures() map[string]error {
	before := map[string]error{}
	for id, n := range e.nodes {
		before[id] = n.failed
	}
	return before
}

// failedSince returns the nodes that fail otherwise than before.
func (e *Engine) failedSince(before map[string]error, c counts) (ids []string) {
	for _, id := range c.results[failed] {
		if n := e.nodes[id]; n != nil && n.failed != nil && !sameError(before[id], n.failed) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c counts) changed() bool {
	return len(c.results[rebuilt])+len(c.results[updated])+len(c.results[failed])+len(c.results[inProgress])+len(c.added)+len(c.removed) > 0
}

func (c counts) String() string {
	parts := []string{fmt.Sprintf("%d of %d nodes rebuilt", len(c.results[rebuilt]), c.nodes)}
	switch {
	case c.first && c.nodes == 1:
		parts[0] = "1 node"
	case c.first:
		parts[0] = fmt.Sprintf("%d nodes", c.nodes)
	case c.nodes == 1:
		parts[0] = fmt.Sprintf("%d of 1 node rebuilt", len(c.results[rebuilt]))
	}
	for _, p := range []struct {
		ids  []string
		what string
	}{{c.results[updated], "updated"}, {c.removed, "removed"}, {c.results[failed], "failed"}, {c.results[inProgress], "in progress"}} {
		if len(p.ids) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(p.ids), p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// report says how a change went that was made; what is empty when nothing
// good came of it.
func (e *Engine) report(what string, start time.Time, c counts) {
	took := time.Since(start)
	outcome, lines := "applied", []string(nil)
	if mended := e.mended(c); what == "" && len(mended) > 0 {
		what = "reloaded " + strings.Join(mended, ", ")
	}
	if what != "" {
		lines = append(lines, e.line(what, took, c))
	}
	for _, id := range c.results[failed] {
		n := e.nodes[id]
		if n == nil || n.failed == nil {
			continue
		}
		outcome = "partial"
		what, remark := "cannot reload ", "; the last good version keeps running"
		if _, ok := errors.AsType[*refusedError](n.failed); ok {
			remark = "" // it names the version that runs
		}
		if n.current == nil {
			what, remark = "cannot run ", ""
		}
		lines = append(lines, withSource(what+id, n.failed.Error(), remark))
	}
	for _, id := range c.broken {
		if h := e.heads[id]; h != nil && !h.healthy() {
			outcome = "partial"
			lines = append(lines, withSource("cannot reload "+id, h.state.Load().Health.Message, "; the last good version keeps running"))
		}
		if s := e.byName[id]; s != nil && s.failed {
			outcome = "partial"
			remark := "; the last good version stays as far as that is safe"
			if s.args == nil {
				remark = ""
			}
			lines = append(lines, withSource("cannot configure "+id, s.info().Health.Message, remark))
		}
	}
	e.metrics.reloaded(outcome, took)
	message := strings.Join(lines, "\n")
	if e.refused {
		message += "\nthe config file was refused and is not what runs"
	}
	r := e.record(c, outcome, message, took)
	e.reload.Store(r)
	for _, l := range lines {
		e.o.Announce(l)
	}
	level := slog.LevelInfo
	if len(lines) > 0 {
		level = e.announcedLevel(level)
	}
	e.log.Log(e.hard, level, "configuration applied", "id", r.ID, "trigger", r.Trigger.Kind, "files", r.Trigger.Files,
		"duration", took, "steps", e.change.stepList(), "outcome", outcome, "nodes", c.nodes, "untouched", r.Untouched,
		"added", len(c.added), "rebuilt", r.Rebuilt, "updated", len(c.results[updated]), "removed", len(c.removed), "failed", len(c.results[failed]))
}

// mended returns the imports and foreachs that are well again.
func (e *Engine) mended(c counts) (ids []string) {
	for _, id := range c.broken {
		if h := e.heads[id]; h != nil && h.healthy() {
			ids = append(ids, id)
		}
	}
	return ids
}

// refuse says that a change was not made, and what happens instead.
func (e *Engine) refuse(what, instead string, start time.Time, err error, files map[string]string) {
	took := time.Since(start)
	e.metrics.reloaded("refused", took)
	text, first, more := allMistakes(err, files), err.Error(), ""
	if ds, ok := errors.AsType[config.Diagnostics](err); ok {
		d := ds[max(0, slices.IndexFunc(ds, func(d config.Diagnostic) bool { return d.Line > 0 }))]
		first = d.Error()
		if src := snippet(files[d.File], d.Line); src != "" {
			first += fmt.Sprintf("\n  %d | %s", d.Line, src)
		}
		if len(ds) > 1 {
			more = fmt.Sprintf(" (and %d more)", len(ds)-1)
		}
	}
	e.reload.Store(e.record(counts{nodes: len(e.nodes)}, "refused", text, took))
	if e.lastErr == text {
		return
	}
	e.lastErr = text
	e.log.Log(e.hard, e.announcedLevel(slog.LevelError), "configuration refused, "+instead, "err", err)
	e.o.Announce(withSource(what, first, more+"; "+instead))
}

// allMistakes returns the errors in a config with their source lines.
func allMistakes(err error, files map[string]string) string {
	ds, ok := errors.AsType[config.Diagnostics](err)
	if !ok {
		return err.Error()
	}
	var b strings.Builder
	ds.Write(&b, files, false)
	return strings.TrimSpace(b.String())
}

// announcedLevel returns the level to log at what is announced as well: once is enough for
// people.
func (e *Engine) announcedLevel(level slog.Level) slog.Level {
	if e.announces {
		return slog.LevelDebug
	}
	return level
}

// withSource is a line "what: message" and below it, if the message has more
// lines, the source it is about. remark ends the first line.
func withSource(what, message, remark string) string {
	message, source, ok := strings.Cut(message, "\n")
	if ok {
		source = "\n" + source
	}
	return what + ": " + message + remark + source
}

// snippet returns a line of a text, trimmed.
func snippet(text string, line int) string {
	if line < 1 {
		return ""
	}
	lines := strings.SplitN(text, "\n", line+1)
	if len(lines) < line {
		return ""
	}
	return strings.TrimSpace(lines[line-1])
}

// configName is how a config is called in messages.
func configName(path string) string { return filepath.Base(path) }

func milliseconds(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
