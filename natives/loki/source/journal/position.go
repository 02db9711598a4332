package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// The position file has a first line that names the format, followed by one line
// for each cursor. Lines with one of these prefixes are not part of the position
// itself:
//
//   - checkpoint: the position at least checkpointAge ago. It is used after a power
//     failure, because sinks may have accepted data since then without writing it
//     to the disk.
//   - foreign: the cursor of Promtail, or of an old weir that stored only one cursor.
//   - boot: the boot of the machine in which the position was stored.
const (
	positionFormat   = "weir journal position 1"
	checkpointPrefix = "checkpoint "
	foreignPrefix    = "foreign "
	bootPrefix       = "boot "
)

// checkpointAge is longer than the time after which the system writes to the
// disk.
const checkpointAge = time.Minute

// maxSequences is the maximum number of sequences in a position. The most
// recently read ones are kept.
const maxSequences = 1000

// cursors are the last entries of sequences.
type cursors map[journalfile.ID]journalfile.Cursor

// position is the last accepted entry of each sequence. It is safe for concurrent
// use, but only one goroutine may call load and save.
type position struct {
	path string
	boot string // of the machine; "" if unknown

	foreign    *journalfile.Cursor
	checkpoint cursors // at least checkpointAge old
	aging      cursors // the next checkpoint
	aged       time.Time

	mu    sync.Mutex
	done  cursors
	moved bool // the position has moved since it was saved
	open  []*mark
}

// mark is the end of a batch that was sent and is not done.
type mark struct {
	ends cursors
	ack  *batch.Ack
	done bool
}

// loadPosition reads the position, or Promtail's if there is none. If the
// position file is unusable, it is renamed, and entries up to max_age are read
// again.
func loadPosition(path, boot string, legacy *Legacy, now time.Time, logger *slog.Logger) (*position, error) {
	p := &position{path: path, boot: boot, done: cursors{}, aged: now}
	b, err := files.Read(path, files.MaxOwn)
	switch {
	case err == nil:
		if err := p.parse(string(b)); err != nil {
			aside := path + ".damaged"
			logger.Error("cannot use the journal position; entries may be sent again", "err", err, "kept", aside)
			p.done, p.foreign = cursors{}, nil
			if err := os.Rename(path, aside); err != nil {
				return nil, fmt.Errorf("cannot set journal position aside: %w", err)
			}
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot read journal position: %w", err)
	case legacy != nil:
		if err := p.takeLegacy(legacy); err != nil {
			return nil, err
		}
	}
	p.checkpoint, p.aging = maps.Clone(p.done), maps.Clone(p.done)
	return p, nil
}

// takeLegacy imports the position of Promtail, if it exists.
func (p *position) takeLegacy(legacy *Legacy) error {
	b, err := files.Read(legacy.File, files.MaxOwn)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read Promtail's positions file: %w", err)
	}
	var doc struct {
		Positions map[string]string `yaml:"positions"`
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("cannot read Promtail's positions file %q: %w", legacy.File, err)
	}
	if s := doc.Positions["cursor-"+legacy.Name]; s != "" {
		return p.takeForeign(s)
	}
	return nil
}

func (p *position) takeForeign(s string) error {
	c, err := journalfile.ParseCursor(strings.TrimSpace(s))
	if err != nil {
		return err
	}
	p.foreign, p.done[c.SeqnumID], p.moved = &c, c, true
	return nil
}

// parse parses a position file.
func (p *position) parse(s string) error {
	format, rest, _ := strings.Cut(s, "\n")
	if strings.HasPrefix(format, "s=") {
		return p.takeForeign(s)
	}
	if format != positionFormat {
		return fmt.Errorf("%q does not begin with %q: it is damaged, or of a later version", p.path, positionFormat)
	}
	boot, checkpoint := "", cursors{}
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if id, ok := strings.CutPrefix(line, bootPrefix); ok {
			boot = id
			continue
		}
		text, old := strings.CutPrefix(line, checkpointPrefix)
		text, foreign := strings.CutPrefix(text, foreignPrefix)
		c, err := journalfile.ParseCursor(text)
		switch {
		case err != nil:
			return fmt.Errorf("%q is damaged: %w", p.path, err)
		case foreign:
			p.foreign = &c
		case old:
			checkpoint[c.SeqnumID] = c
		default:
			p.done[c.SeqnumID] = c
		}
	}
	if boot != p.boot {
		p.done = checkpoint
	}
	return nil
}

// readerPosition returns the position in the form that a Reader needs.
func (p *position) readerPosition() ([]journalfile.Cursor, *journalfile.Cursor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.done)), p.foreign
}

// begin records that a batch is being sent. ends are its last entries. The
// position moves when its Ack and those of all previous batches are done.
func (p *position) begin(ends cursors) *batch.Ack {
	m := &mark{ends: ends}
	p.mu.Lock()
	defer p.mu.Unlock()
	m.ack = batch.NewAck(func() { p.finish(m) })
	p.open = append(p.open, m)
	return m.ack
}

func (p *position) finish(m *mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.done = true
	for len(p.open) > 0 && p.open[0].done {
		maps.Copy(p.done, p.open[0].ends)
		p.open, p.moved = p.open[1:], true
	}
}

// cancel removes the last batch, because it was not accepted.
func (p *position) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = p.open[:len(p.open)-1]
}

// flush asks receivers that keep lines in memory to send them.
func (p *position) flush() {
	p.mu.Lock()
	open := slices.Clone(p.open)
	p.mu.Unlock()
	for _, m := range open {
		m.ack.Flush()
	}
}

// pending returns the number of batches that were sent and are not done.
func (p *position) pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// save writes the position if it has moved.
func (p *position) save(now time.Time) error {
	p.mu.Lock()
	if len(p.done) > maxSequences {
		p.dropOldest()
	}
	done, moved := maps.Clone(p.done), p.moved
	p.moved = false
	p.mu.Unlock()
	renewed := now.Sub(p.aged) >= checkpointAge && !maps.Equal(p.checkpoint, p.aging)
	if now.Sub(p.aged) >= checkpointAge {
		p.checkpoint, p.aging, p.aged = p.aging, done, now
	}
	if !moved && !renewed {
		return nil
	}
	var b strings.Builder
	b.WriteString(positionFormat + "\n" + bootPrefix + p.boot + "\n")
	for _, x := range []struct {
		prefix string
		at     cursors
	}{{"", done}, {checkpointPrefix, p.checkpoint}} {
		for _, c := range x.at.sorted() {
			b.WriteString(x.prefix + c.String() + "\n")
		}
	}
	if p.foreign != nil {
		b.WriteString(foreignPrefix + p.foreign.String() + "\n")
	}
	err := os.MkdirAll(filepath.Dir(p.path), 0o700)
	if err == nil {
		err = files.Replace(p.path, []byte(b.String()), renewed)
	}
	if err != nil {
		p.mu.Lock()
		p.moved = true
		p.mu.Unlock()
		return fmt.Errorf("cannot write journal position: %w", err)
	}
	return nil
}

// dropOldest keeps only the sequences that were written to most recently.
func (p *position) dropOldest() {
	for _, c := range p.done.sorted()[maxSequences:] {
		delete(p.done, c.SeqnumID)
	}
}

// sorted returns the cursors, latest first.
func (cs cursors) sorted() []journalfile.Cursor {
	return slices.SortedFunc(maps.Values(cs), func(a, b journalfile.Cursor) int {
		return cmp.Or(cmp.Compare(b.Realtime, a.Realtime), bytes.Compare(a.SeqnumID[:], b.SeqnumID[:]))
	})
}

// bootID returns the boot ID of the machine, or "" if there is none.
func bootID() string {
	b, err := files.Read("/proc/sys/kernel/random/boot_id", 1<<10)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
