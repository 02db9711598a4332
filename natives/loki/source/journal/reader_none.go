//go:build !(linux && cgo && journal)

package journal

import (
	"errors"
	"time"
)

// errMissing is why this weir cannot read journals.
var errMissing = errors.New("this weir was built without libsystemd and cannot read the journal: " +
	"build it on Linux with the headers of libsystemd (Debian: libsystemd-dev) and CGO_ENABLED=1 go build -tags journal ./cmd/weir, " +
	"or let journald forward to syslog and use loki.source.syslog")

func open(*Arguments, string, time.Time) (reader, error) { return nil, errMissing }
