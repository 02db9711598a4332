package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"

	"github.com/weir-run/weir/engine/files"
)

// history is the file with the lines that the user has typed at a prompt. Only the user
// can read it.
type replHistory struct {
	lines []string // of earlier sessions
	file  *os.File // nil: nothing is kept
	err   error    // why
}

// maxHistory is the maximum size of a history that is read, in bytes.
const maxHistory = 4 << 20

// openHistory opens the history of a language. Its length is limited when it is opened.
func openHistory(name string) *replHistory {
	h := &replHistory{}
	dir, err := os.UserCacheDir()
	if err == nil {
		err = h.open(filepath.Join(dir, "weir", "repl_history_"+name))
	}
	if err != nil {
		h.err = fmt.Errorf("cannot keep the lines that are typed: %w", err)
	}
	return h
}

func (h *replHistory) open(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := files.Read(path, maxHistory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if h.lines = all[max(0, len(all)-liner.HistoryLimit):]; len(h.lines) < len(all) {
		flags |= os.O_TRUNC
	}
	if h.file, err = os.OpenFile(path, flags, 0o600); err != nil {
		return err
	}
	if len(h.lines) < len(all) {
		_, err = h.file.WriteString(strings.Join(h.lines, "\n") + "\n")
	}
	return errors.Join(err, h.file.Chmod(0o600))
}

// add keeps a line.
func (h *replHistory) add(line string) {
	if h.file != nil {
		_, _ = h.file.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n") // losing a line does no harm
	}
}

func (h *replHistory) close() {
	if h.file != nil {
		_ = h.file.Close()
	}
}
