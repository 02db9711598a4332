package unix

import "log/slog"

// Quiet is the handler that the collectors log with.
func Quiet(h slog.Handler) slog.Handler { return quiet{h} }
