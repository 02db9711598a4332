package unix

import (
	"context"
	"log/slog"
)

// quiet lowers the level of some log lines of collectors. Info lines become debug
// lines, because they only contain settings and are repeated for every node and
// reload. The error that udev does not exist becomes an info line: this is normal
// in containers, and only some labels of node_disk_info are missing.
type quiet struct{ slog.Handler }

const noUdev = "Failed to open directory, disabling udev device properties"

// Enabled returns whether the level that Handle will use is enabled.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, lowered(l))
}

// Handle writes the line with its lowered level.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level = lowered(r.Level); r.Message == noUdev {
		r.Level = slog.LevelInfo
		if !q.Handler.Enabled(ctx, r.Level) { // it was enabled as an error
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs returns a quiet handler with attributes.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup returns a quiet handler with a group.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func lowered(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}
