package file

import "time"

// settings are the arguments that a follower needs.
type settings struct {
	coding             *coding
	format             Format // "" when files are not compressed
	delay              time.Duration
	tailFromEnd        bool
	onError            OnPositionsFileError
	minPause, maxPause time.Duration
	encoding           string
	idle, maxWait      time.Duration // of rotated files
}

func newSettings(a *Arguments) *settings {
	coding, err := encodingOf(a.Encoding)
	if err != nil {
		coding = plain // Validate has rejected it already
	}
	s := &settings{
		coding: coding, encoding: a.Encoding, tailFromEnd: a.TailFromEnd, onError: a.OnPositionsFileError,
		minPause: min(a.FileWatch.MinPollFrequency, a.FileWatch.MaxPollFrequency), maxPause: a.FileWatch.MaxPollFrequency,
		idle: a.FileRotation.IdleTimeout, maxWait: a.FileRotation.MaxWait,
	}
	if a.Decompression.Enabled {
		s.format, s.delay = a.Decompression.Format, a.Decompression.InitialDelay
	}
	return s
}
