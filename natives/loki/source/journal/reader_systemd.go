//go:build linux && cgo && journal

package journal

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/sdjournal"
)

// errMissing is why this weir cannot read journals: it can.
var errMissing error

// systemd reads a journal by libsystemd.
type systemd struct{ j *sdjournal.Journal }

// open opens the journal behind a cursor, or at the first entry since.
func open(a *Arguments, cursor string, since time.Time) (reader, error) {
	var j *sdjournal.Journal
	var err error
	if a.Path == "" {
		j, err = sdjournal.NewJournal()
	} else {
		j, err = sdjournal.NewJournalFromDir(a.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal %s: %w", a.Path, err)
	}
	s := &systemd{j}
	if err := s.seek(a, cursor, since); err != nil {
		return nil, fmt.Errorf("cannot read the journal %s: %w", a.Path, errors.Join(err, j.Close()))
	}
	return s, nil
}

func (s *systemd) seek(a *Arguments, cursor string, since time.Time) error {
	if err := s.j.SetDataThreshold(0); err != nil { // or long messages are cut
		return err
	}
	for _, m := range strings.Fields(a.Matches) {
		if err := s.j.AddMatch(m); err != nil {
			return err
		}
	}
	if cursor != "" && s.j.SeekCursor(cursor) == nil { // of another journal it is an error
		n, err := s.j.Next()
		if err != nil {
			return err
		}
		if usec, err := s.j.GetRealtimeUsec(); n == 0 || err == nil && int64(usec) >= since.UnixMicro() {
			if n > 0 && s.j.TestCursor(cursor) != nil { // it was vacuumed: this one is the next
				_, err = s.j.Previous()
				return err
			}
			return nil
		}
	}
	return s.j.SeekRealtimeUsec(uint64(max(0, since.UnixMicro())))
}

// next returns the next entry, nil when there is none now.
func (s *systemd) next() (*entry, error) {
	n, err := s.j.Next()
	if n == 0 || err != nil {
		return nil, err
	}
	e, err := s.j.GetEntry()
	if err != nil {
		return nil, err
	}
	return &entry{fields: e.Fields, cursor: e.Cursor, usec: int64(e.RealtimeTimestamp)}, nil
}

// wait returns when there may be more, or after a while.
func (s *systemd) wait() { s.j.Wait(250 * time.Millisecond) }

func (s *systemd) close() error { return s.j.Close() }
