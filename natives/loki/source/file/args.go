package file

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/glob"
)

// Labels of targets that have a meaning for the component.
const (
	pathLabel     = "__path__"
	excludeLabel  = "__path_exclude__"
	filenameLabel = "filename"
)

// Arguments of loki.source.file.
type Arguments struct {
	// Targets whose label __path__ is a file to follow. Their other labels, except those
	// that begin with two underscores, become labels of the lines; the label filename is
	// the path. If a target is removed, its file is read to the end first. weir looks
	// for a rotated file in the same directory. It also continues to read a file that is
	// moved to another directory (logrotate's olddir). If the file is moved while weir
	// is down, weir finds it only if a target with the same labels, or a pattern,
	// matches its new path. Files in weir's storage directory are skipped. Do not follow
	// a file that contains weir's own output: log messages about a problem with a line
	// would be read again.
	Targets []map[string]string `alloy:"targets,attr"`
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// IANA name of the encoding of the files, such as UTF-16LE or GBK; UTF-8 when
	// it is empty. A byte order mark at the start of a file wins over it.
	Encoding string `alloy:"encoding,attr,optional"`
	// Whether a file without a stored position is read from its end instead of from its
	// beginning. Lines that a new file already contains when weir first sees it are
	// skipped too. After a rotation, the new file is read from its beginning. The
	// argument has no effect on compressed files, which are read completely.
	TailFromEnd bool `alloy:"tail_from_end,attr,optional"`
	// Positions file of Promtail or Alloy to import if there is no positions log yet. It
	// is removed after the import.
	LegacyPositionsFile string `alloy:"legacy_positions_file,attr,optional"`
	// How to treat a file whose position cannot be read because the positions are
	// damaged: "restart_from_beginning", "restart_from_end", or "skip", which does
	// not read the file until weir is restarted.
	OnPositionsFileError OnPositionsFileError `alloy:"on_positions_file_error,attr,optional"`

	// Reads compressed files.
	Decompression Decompression `alloy:"decompression,block,optional"`
	// Intervals at which files are checked for new lines.
	FileWatch FileWatch `alloy:"file_watch,block,optional"`
	// How long a file is read after it was renamed or deleted.
	FileRotation FileRotation `alloy:"file_rotation,block,optional"`
	// Treats __path__ as a pattern, like local.file_match.
	FileMatch FileMatch `alloy:"file_match,block,optional"`
}

// Decompression configures compressed files.
type Decompression struct {
	// Whether files are compressed. Each file is read once, completely.
	Enabled bool `alloy:"enabled,attr"`
	// Time to wait before a new file is read, because its compression may not be
	// complete.
	InitialDelay time.Duration `alloy:"initial_delay,attr,optional"`
	// The compression format: "gz" for gzip, "z" for zlib, "bz2" for bzip2.
	Format Format `alloy:"format,attr"`
}

// FileWatch sets how often files are checked. While nothing is written to a file, the
// interval doubles from the minimum to the maximum.
type FileWatch struct {
	// Minimum interval between two checks of a file. If max_poll_frequency is shorter,
	// it applies instead.
	MinPollFrequency time.Duration `alloy:"min_poll_frequency,attr,optional"`
	// Maximum interval between two checks of a file.
	MaxPollFrequency time.Duration `alloy:"max_poll_frequency,attr,optional"`
}

// FileRotation sets how long a file is read after it was renamed or deleted. Its writer
// may continue to write to it until it opens the new file.
type FileRotation struct {
	// A file is closed if nothing was written to it for this time. On Linux, it stays
	// open until no process has it open for writing. weir can detect that if it runs as
	// the owner of the file or with CAP_LEASE, and if the file system supports leases.
	// Otherwise the file stays open for max_wait.
	IdleTimeout time.Duration `alloy:"idle_timeout,attr,optional"`
	// Maximum time for which a file is kept open. Lines that a renamed file contains at
	// that time are still read. A deleted file is closed to free its disk space, and
	// lines that have not been read yet are lost. Losses are logged and counted in
	// weir_source_file_lost_bytes_total.
	MaxWait time.Duration `alloy:"max_wait,attr,optional"`
}

// FileMatch finds files with patterns.
type FileMatch struct {
	// Whether __path__ is a pattern (*, ?, [a-z], {a,b}, and ** for any number of
	// directories). Files that match the pattern in the optional label __path_exclude__
	// are skipped.
	Enabled bool `alloy:"enabled,attr,optional"`
	// Interval between two searches for files.
	SyncPeriod time.Duration `alloy:"sync_period,attr,optional"`
	// Files that have not been written to for longer than this are skipped; 0s disables
	// the limit.
	IgnoreOlderThan time.Duration `alloy:"ignore_older_than,attr,optional"`
}

// OnPositionsFileError is the action for a file whose position cannot be read.
type OnPositionsFileError string

// The values of on_positions_file_error.
const (
	fromBeginning OnPositionsFileError = "restart_from_beginning"
	fromEnd       OnPositionsFileError = "restart_from_end"
	skip          OnPositionsFileError = "skip"
)

// UnmarshalText implements encoding.TextUnmarshaler and rejects unknown values.
func (o *OnPositionsFileError) UnmarshalText(text []byte) error {
	switch v := OnPositionsFileError(text); v {
	case fromBeginning, fromEnd, skip:
		*o = v
		return nil
	}
	return fmt.Errorf("unknown on_positions_file_error %q, want %q, %q or %q", text, fromBeginning, fromEnd, skip)
}

// MarshalText implements encoding.TextMarshaler.
func (o OnPositionsFileError) MarshalText() ([]byte, error) { return []byte(o), nil }

// Format is a compression format.
type Format string

// The formats.
const (
	gz  Format = "gz"
	z   Format = "z"
	bz2 Format = "bz2"
)

// UnmarshalText accepts the known formats.
func (f *Format) UnmarshalText(text []byte) error {
	switch v := Format(text); v {
	case gz, z, bz2:
		*f = v
		return nil
	}
	return fmt.Errorf("unknown compression format %q, want %q, %q or %q", text, gz, z, bz2)
}

// MarshalText implements encoding.TextMarshaler.
func (f Format) MarshalText() ([]byte, error) { return []byte(f), nil }

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{
		OnPositionsFileError: fromBeginning,
		FileWatch:            FileWatch{MinPollFrequency: 250 * time.Millisecond, MaxPollFrequency: 250 * time.Millisecond},
		FileRotation:         FileRotation{IdleTimeout: 5 * time.Second, MaxWait: 5 * time.Minute},
		FileMatch:            FileMatch{SyncPeriod: 10 * time.Second},
	}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if _, err := encodingOf(a.Encoding); err != nil {
		errs = append(errs, err)
	}
	if a.Decompression.InitialDelay < 0 {
		errs = append(errs, fmt.Errorf("decompression.initial_delay is %s, must not be negative", a.Decompression.InitialDelay))
	}
	for _, w := range []struct {
		name  string
		pause time.Duration
	}{{"min", a.FileWatch.MinPollFrequency}, {"max", a.FileWatch.MaxPollFrequency}} {
		if w.pause <= 0 {
			errs = append(errs, fmt.Errorf("file_watch.%s_poll_frequency is %s, must be greater than 0", w.name, w.pause))
		}
	}
	if a.FileRotation.IdleTimeout <= 0 {
		errs = append(errs, fmt.Errorf("file_rotation.idle_timeout is %s, must be greater than 0", a.FileRotation.IdleTimeout))
	}
	if r := a.FileRotation; r.MaxWait <= 0 {
		errs = append(errs, fmt.Errorf("file_rotation.max_wait is %s, must be greater than 0", r.MaxWait))
	} else if r.MaxWait < r.IdleTimeout {
		errs = append(errs, fmt.Errorf("file_rotation.max_wait is %s, must not be less than idle_timeout (%s)", r.MaxWait, r.IdleTimeout))
	}
	if a.FileMatch.SyncPeriod <= 0 {
		errs = append(errs, fmt.Errorf("file_match.sync_period is %s, must be greater than 0", a.FileMatch.SyncPeriod))
	}
	if a.FileMatch.IgnoreOlderThan < 0 {
		errs = append(errs, fmt.Errorf("file_match.ignore_older_than is %s, must not be negative", a.FileMatch.IgnoreOlderThan))
	}
	for i, t := range a.Targets {
		for _, label := range []string{pathLabel, excludeLabel} {
			if a.FileMatch.Enabled && !glob.Valid(t[label]) {
				errs = append(errs, fmt.Errorf("targets[%d]: %s %q is no pattern: a bracket is not closed, or a range ends before it begins", i, label, t[label]))
			}
		}
	}
	return errors.Join(errs...)
}

var (
	_ component.Warner         = (*Arguments)(nil)
	_ component.StorageChecker = (*Arguments)(nil)
)

// CheckStorage warns about targets that lead to weir's own files.
func (a *Arguments) CheckStorage(dir string) []*component.ArgumentError {
	return glob.CheckStorage("targets", a.Targets, a.FileMatch.Enabled, dir)
}

// Warnings reports arguments without effect, and patterns that are used as file
// names because file_match is not enabled.
func (a *Arguments) Warnings() (ws []string) {
	if a.Decompression.Enabled && a.TailFromEnd {
		ws = append(ws, "tail_from_end has no effect with decompression: a compressed file is always read as a whole")
	}
	if a.FileMatch.Enabled {
		return ws
	}
	for i, t := range a.Targets {
		if path := t[pathLabel]; strings.ContainsAny(path, "*?[{") {
			if _, err := files.StatSoon(path); err != nil && !errors.Is(err, files.ErrHung) {
				ws = append(ws, fmt.Sprintf("targets[%d] has %s %q, which is no file: to take it for a pattern, write file_match { enabled = true }", i, pathLabel, path))
			}
		}
	}
	return ws
}
