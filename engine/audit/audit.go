// Package audit records the changes that people and programs request over weir's API: who,
// what, when, and with which outcome.
//
// The log is a file of JSON lines in the storage directory, which only weir's user can
// read. It is only appended to. At 1 MiB it becomes File + ".1", which replaces an earlier
// one, so that both have at most 2 MiB. Each entry is also a line of weir's log with
// audit=true, for systems that collect logs.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// File is the name of the file in the storage directory.
const File = "audit.jsonl"

const (
	maxFile    = 1 << 20
	maxEntries = 200 // in memory
	maxText    = 512 // bytes of each text of an entry
)

// Entry is a change that was requested.
type Entry struct {
	Time time.Time `json:"time"`
	// The caller is "socket" (weir's user, such as the command line), "token", "login" and the
	// name, or "session" and the beginning of a hash of its ID.
	Who string `json:"who"`
	// Remote is the address of the client; it is empty for the socket.
	Remote string `json:"remote,omitempty"`
	// Request is the method and the path, with the parameters. Values of state are
	// hidden.
	Request string `json:"request"`
	// Outcome is "done" or "refused".
	Outcome string `json:"outcome"`
	Status  int    `json:"status"` // of the response
	// Message is why the request was refused.
	Message string `json:"message,omitempty"`
}

// Log is an audit log. Its methods are safe for concurrent use.
type Log struct {
	log *slog.Logger

	mu      sync.Mutex
	path    string // "" before Open
	entries []Entry
	failing bool // the last write failed
}

// New returns a log that has only what is added to it, until Open is called. l is weir's
// log.
func New(l *slog.Logger) *Log { return &Log{log: l} }

// Open continues the file in a storage directory, which the caller has locked.
func (l *Log) Open(dir string) error {
	path := filepath.Join(dir, File)
	var before []Entry
	for _, p := range []string{path + ".1", path} {
		text, err := files.Read(p, 2*maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read the audit log: %w", err)
		}
		for line := range bytes.Lines(text) {
			var e Entry
			if json.Unmarshal(line, &e) == nil { // a crash may leave an incomplete line
				before = append(before, e)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path = path
	added := l.entries
	l.entries = nil
	for _, e := range append(before, added...) {
		l.keep(e)
	}
	for _, e := range added {
		l.write(e)
	}
	return nil
}

// Add adds an entry.
func (l *Log) Add(e Entry) {
	e.Time = e.Time.UTC()
	for _, text := range []*string{&e.Who, &e.Request, &e.Message} {
		if len(*text) > maxText {
			*text = string(bytes.ToValidUTF8([]byte((*text)[:maxText]), nil)) + "…"
		}
	}
	l.log.Info("change by request", "audit", true, "who", e.Who, "remote", e.Remote, "request", e.Request, "outcome", e.Outcome, "status", e.Status, "message", e.Message)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(e)
	if l.path != "" {
		l.write(e)
	}
}

// Entries returns the last 200 entries, the oldest first.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// keep keeps an entry in memory. mu is held.
func (l *Log) keep(e Entry) {
	if len(l.entries) >= maxEntries {
		l.entries = slices.Delete(l.entries, 0, len(l.entries)-maxEntries+1)
	}
	l.entries = append(l.entries, e)
}

// write appends an entry to the file. The change has been made, so an error is only
// logged, once until writing works again. mu is held.
func (l *Log) write(e Entry) {
	line, _ := json.Marshal(e) // it has what JSON can express
	path := l.path
	_, err := files.Do(path, "write", func() (struct{}, error) { return struct{}{}, appendLine(path, append(line, '\n')) })
	if err != nil && !l.failing {
		l.log.Error("cannot write the audit log", "err", err)
	}
	l.failing = err != nil
}

func appendLine(path string, line []byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() > 0 && fi.Size()+int64(len(line)) > maxFile {
		if err = errors.Join(f.Close(), os.Rename(path, path+".1")); err != nil {
			return err
		}
		return appendLine(path, line)
	}
	if err == nil {
		_, err = f.Write(line)
	}
	return errors.Join(err, f.Close())
}
