package unix

import "log/slog"

// Quiet returns the log handler of the collectors.
func Quiet(h slog.Handler) slog.Handler { return quiet{h} }
