package regex

import (
	"context"
	"fmt"
	"time"
)

const (
	// TextTime is what the matches of one text may take.
	TextTime = time.Second
	// BatchTime is what all texts of a batch may take that are not short.
	BatchTime = 5 * time.Second
	// maxGap is the most that counts between two checks: what is longer is time in
	// which a busy machine did something else.
	maxGap = 100 * time.Millisecond
)

// Meter is the Guard of components that have no budget of their own: it bounds the
// time that the texts of a batch take, and ends with the batch's context. Texts
// that are matched at once take none of it. It is of one goroutine.
type Meter struct {
	ended       func() error  // why the batch has to end; nil while it goes on
	text, batch time.Duration // left
	began       bool          // looked is when the text was last asked for
	looked      time.Time
	failed      error
}

// NewMeter returns the meter of a batch.
func NewMeter(ctx context.Context) *Meter {
	return &Meter{ended: ctx.Err, text: TextTime, batch: BatchTime}
}

// Guard begins a text.
func (m *Meter) Guard() Guard {
	m.text, m.began, m.failed = TextTime, false, nil
	return Guard{Check: m.check}
}

// Err returns why the batch has to end: its context did.
func (m *Meter) Err() error { return m.ended() }

func (m *Meter) check() error {
	if m.failed != nil {
		return m.failed
	}
	now := time.Now()
	if m.began {
		gap := min(now.Sub(m.looked), maxGap)
		m.text -= gap
		m.batch -= gap
	}
	m.began, m.looked = true, now
	switch err := m.ended(); {
	case err != nil:
		m.failed = err
	case m.text <= 0:
		m.failed = fmt.Errorf("matching it took longer than %s", TextTime)
	case m.batch <= 0:
		m.failed = fmt.Errorf("matching the texts of the batch took longer than %s", BatchTime)
	}
	return m.failed
}
