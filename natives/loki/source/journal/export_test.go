package journal

import (
	"log/slog"
	"time"

	"github.com/weir-run/weir/natives/loki/source/journal/internal/journalfile"
)

// Problem is what health says of a reader.
func Problem(a *Arguments, r *journalfile.Reader) string {
	return (&Component{args: a}).problem(r, nil)
}

// LoadPosition returns the position that a file has for a boot of the machine.
func LoadPosition(path, boot string) ([]journalfile.Cursor, error) {
	p, err := loadPosition(path, boot, nil, time.Now(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	at, _ := p.readerPosition()
	return at, nil
}

// CheckHost is what a check and a start say of a host.
var CheckHost = checkHost

// BootID is the ID of the machine's boot.
var BootID = bootID
