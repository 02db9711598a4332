package quickstart

import _ "embed"

// Logs are sample log lines in the text form of batches: an access log, JSON, logfmt, and
// a stack trace.
//
//go:embed logs.txt
var Logs string
