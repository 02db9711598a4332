package journal

import (
	"time"

	"github.com/weir-run/weir/engine/component"
)

// Entry is one of a journal that a test has.
type Entry struct {
	Fields map[string]string
	Cursor string
	Usec   int64
}

// Fake is a journal that a test writes to before it is read.
type Fake struct {
	Entries []Entry
	More    chan struct{} // what wait waits for
	Cursor  string        // that it was opened with
	at      int
}

func (f *Fake) next() (*entry, error) {
	if f.at == len(f.Entries) {
		return nil, nil
	}
	e := f.Entries[f.at]
	f.at++
	return &entry{e.Fields, e.Cursor, e.Usec}, nil
}

func (f *Fake) wait() { <-f.More }

func (f *Fake) close() error { return nil }

// Build makes a component that reads f.
func Build(o component.Options, a *Arguments, f *Fake) (component.Component, error) {
	return build(o, a, func(_ *Arguments, cursor string, _ time.Time) (reader, error) {
		f.Cursor = cursor
		for i, e := range f.Entries {
			if e.Cursor == cursor {
				f.at = i + 1
			}
		}
		return f, nil
	}, nil)
}

// Missing is why journals cannot be read, nil when they can.
var Missing = errMissing
