package file

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// Arguments of local.file.
type Arguments struct {
	// File to read; a relative path starts where weir was started. It must be a
	// regular file, or a link to one, of at most 16 MiB. While its file system does
	// not answer, the last content stays exported and the node is unhealthy.
	Filename string `alloy:"filename,attr"`
	// How a change is noticed: "fsnotify" asks the operating system and still
	// polls, for file systems that do not tell; "poll" only polls.
	Detector Detector `alloy:"detector,attr,optional"`
	// How often the file is read to see whether it changed.
	PollFrequency time.Duration `alloy:"poll_frequency,attr,optional"`
	// Whether the content is a secret: never shown, and usable only where a
	// secret is expected.
	IsSecret bool `alloy:"is_secret,attr,optional"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Detector: Fsnotify, PollFrequency: time.Minute}
}

// Validate returns all that is wrong with the arguments, joined.
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
	// What is in the file, byte for byte: a secret when is_secret is set, else
	// a string.
	Content component.OptionalSecret `alloy:"content,attr"`
}

// Detector is a way to notice changes.
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
