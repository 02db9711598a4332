package regex

import (
	"context"
	"fmt"
	"time"
)

const (
	// TextTime is the time limit for the matches of one text.
	TextTime = time.Second
	// BatchTime is the time limit for all texts of a batch that are not short.
	BatchTime = 5 * time.Second
	// maxGap is the maximum time that counts between two checks: in the rest of
	// the time, a busy machine did something else.
	maxGap = 100 * time.Millisecond
)

// Meter provides the Guard for components without their own budget: it limits
// the time for the texts of a batch, and ends with the batch's context. Texts
// that are matched in one step do not count. It is for one goroutine.
type Meter struct {
	ended       func() error  // why the batch must end; nil while it continues
	text, batch time.Duration // remaining time
	began       bool          // looked is the time of the last check
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

// Err returns why the batch must end: the error of its context.
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
