package file

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// Arguments of local.file.
type Arguments struct {
	// File to read. A relative path is relative to the working directory of weir. It
	// must be a regular file, or a link to one, of at most 16 MiB. While its file system
	// does not respond, the last content stays exported and the node is unhealthy.
	Filename string `alloy:"filename,attr"`
	// How changes are detected: "fsnotify" uses notifications of the operating system
	// and also polls, for file systems without notifications; "poll" only polls.
	Detector Detector `alloy:"detector,attr,optional"`
	// Interval between two checks for changes.
	PollFrequency time.Duration `alloy:"poll_frequency,attr,optional"`
	// Whether the content is a secret. A secret is never displayed and can be used only
	// where a secret is expected.
	IsSecret bool `alloy:"is_secret,attr,optional"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Detector: Fsnotify, PollFrequency: time.Minute}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if a.Filename == "" {
		errs = append(errs, errors.New("filename must not be empty"))
	}
	if a.PollFrequency <= 0 {
		errs = append(errs, fmt.Errorf("poll_frequency is %s, must be greater than 0", a.PollFrequency))
	}
	return errors.Join(errs...)
}

// Exports of local.file.
type Exports struct {
	// Content of the file, byte for byte: a secret if is_secret is set, otherwise a
	// string.
	Content component.OptionalSecret `alloy:"content,attr"`
}

// Detector is a method for detecting changes.
type Detector string

// The detectors.
const (
	Fsnotify Detector = "fsnotify"
	Poll     Detector = "poll"
)

// UnmarshalText accepts the known detectors.
func (d *Detector) UnmarshalText(text []byte) error {
	switch Detector(text) {
	case Fsnotify, Poll:
		*d = Detector(text)
		return nil
	}
	return fmt.Errorf("unknown detector %q, want %q or %q", text, Fsnotify, Poll)
}

// MarshalText returns the detector's name.
func (d Detector) MarshalText() ([]byte, error) { return []byte(d), nil }
