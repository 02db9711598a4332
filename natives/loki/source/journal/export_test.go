package journal

import (
	"log/slog"
	"time"

	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// Problem returns the problem that the health shows for a reader.
func Problem(a *Arguments, r *journalfile.Reader) string {
	return (&Component{args: a}).problem(r, nil)
}

// LoadPosition returns the position in a file for a boot of the machine.
func LoadPosition(path, boot string) ([]journalfile.Cursor, error) {
	p, err := loadPosition(path, boot, nil, time.Now(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	at, _ := p.readerPosition()
	return at, nil
}

// CheckHost is the check of the host.
var CheckHost = checkHost

// BootID returns the boot ID of the machine.
var BootID = bootID
