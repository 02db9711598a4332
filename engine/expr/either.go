package expr

import (
	"cmp"
	"errors"
)

// Programs contains one expression over samples and over log lines. One of them
// may be nil, with an error: it reads names that this signal does not have.
type Programs struct {
	Metrics, Logs *Program
	Why           *Error
}

// CompileEither is like Compile, for an expression over samples, over log
// lines, or over both. The error is an *Error.
func CompileEither(src string, kind Kind, args map[string]any) (Programs, error) {
	metrics, forMetrics := Compile(src, kind, args)
	logs, forLogs := CompileLogs(src, kind, args)
	noMetrics, noLogs := asError(forMetrics), asError(forLogs)
	switch {
	case noMetrics == nil || noLogs == nil:
		return Programs{Metrics: metrics, Logs: logs, Why: cmp.Or(noMetrics, noLogs)}, nil
	case noMetrics.other && noLogs.other:
		e := *noLogs
		e.Msg += "; and " + noMetrics.Msg
		return Programs{}, &e
	case noMetrics.other:
		return Programs{}, noLogs
	}
	return Programs{}, noMetrics
}

func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
