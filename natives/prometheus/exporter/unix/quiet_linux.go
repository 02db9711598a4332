package unix

import (
	"context"
	"log/slog"
)

// quiet makes debug lines of what collectors say at info, which is their
// settings, again for every node and reload; and information of the error that
// there is no udev, as in every container: some labels of node_disk_info are
// all that is missing.
type quiet struct{ slog.Handler }

const noUdev = "Failed to open directory, disabling udev device properties"

// Enabled asks for the level that Handle will use.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, lowered(l))
}

// Handle writes the line at its lowered level.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level = lowered(r.Level); r.Message == noUdev {
		r.Level = slog.LevelInfo
		if !q.Handler.Enabled(ctx, r.Level) { // it was asked for an error
			return nil
		}
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps the handler quiet.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps the handler quiet.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func lowered(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}
