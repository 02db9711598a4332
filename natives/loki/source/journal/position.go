package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/weir-run/weir/engine/batch"
)

// position is how far the journal was accepted. It is safe for concurrent use.
type position struct {
	path string

	mu     sync.Mutex
	cursor string
	saved  string
	open   []*mark
}

// mark is the end of a batch that is on its way.
type mark struct {
	cursor  string
	receipt *batch.Receipt
	done    bool
}

// loadPosition reads the position, or Promtail's when there is none.
func loadPosition(path string, legacy *Legacy) (*position, error) {
	p := &position{path: path}
	b, err := os.ReadFile(path)
	if err == nil {
		p.cursor, p.saved = string(b), string(b)
		return p, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the position: %w", err)
	}
	if legacy == nil {
		return p, nil
	}
	b, err = os.ReadFile(legacy.File)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read Promtail's positions: %w", err)
	}
	var doc struct {
		Positions map[string]string `yaml:"positions"`
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("cannot read Promtail's positions in %q: %w", legacy.File, err)
	}
	p.cursor = doc.Positions["cursor-"+legacy.Name]
	return p, nil
}

// begin notes that a batch that ends at cursor is on its way. Once its Receipt is
// done, and all before it are, the position moves past it.
func (p *position) begin(cursor string) *batch.Receipt {
	m := &mark{cursor: cursor}
	m.receipt = batch.NewReceipt(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		m.done = true
		for len(p.open) > 0 && p.open[0].done {
			p.cursor = p.open[0].cursor
			p.open = p.open[1:]
		}
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, m)
	return m.receipt
}

// refused says that the batch that was begun last was not accepted.
func (p *position) refused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = p.open[:len(p.open)-1]
}

// flush asks those who keep lines to send them.
func (p *position) flush() {
	p.mu.Lock()
	open := append([]*mark(nil), p.open...)
	p.mu.Unlock()
	for _, m := range open {
		m.receipt.Flush()
	}
}

// flying returns how many batches are on their way.
func (p *position) flying() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// at returns the position, "" for none.
func (p *position) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cursor
}

// save writes the position if it moved. One goroutine at a time calls it.
func (p *position) save() error {
	cursor := p.at()
	if cursor == p.saved {
		return nil
	}
	tmp := p.path + ".tmp"
	err := os.MkdirAll(filepath.Dir(p.path), 0o700)
	if err == nil {
		err = os.WriteFile(tmp, []byte(cursor), 0o600)
	}
	if err == nil {
		err = os.Rename(tmp, p.path)
	}
	if err != nil {
		return fmt.Errorf("cannot save the position: %w", err)
	}
	p.saved = cursor
	return nil
}
