// Package target serves the targets of a benchmark: many targets in one process,
// each with the page of a Go service. It does not simulate unusual targets: the
// pages are valid and fast. Every target listens on its own port, so that the
// label instance identifies it.
//
// Scrape n of a target depends only on the target and n; nine of ten values
// change from one scrape to the next. Sequence series have n as their value (see
// SequenceBase), so that the receiver can detect a lost scrape. n counts the
// scrapes that were answered, from 1.
package target

import (
	"errors"
	"fmt"
	"time"
)

// Format is the syntax of the bodies.
type Format string

// The formats. Every scraper gets the configured one, whatever it requests.
const (
	Text        Format = "text"
	OpenMetrics Format = "openmetrics"
)

// contentType returns the Content-Type of the format.
func (f Format) contentType() string {
	if f == OpenMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// Gzip determines when bodies are compressed.
type Gzip string

// The values of Gzip.
const (
	GzipOff    Gzip = "off"    // never
	GzipAccept Gzip = "accept" // if the scraper accepts it
	GzipAlways Gzip = "always" // always
)

// Options configure the targets.
type Options struct {
	Targets   int
	Series    int // per target, including the sequences
	Sequences int // series of a target that count its scrapes
	Format    Format
	Gzip      Gzip
	Churn     float64 // fraction of a target's series that get another label value at each scrape, 0 to 1

	Interval time.Duration // scrape interval, for counting late scrapes; 0 if it is unknown
}

// Defaults returns the options of the benchmark's usual load.
func Defaults() Options {
	return Options{Targets: 100, Series: 1000, Sequences: 5, Format: Text, Gzip: GzipOff}
}

// Validate returns an error if o is invalid.
func (o Options) Validate() error {
	var errs []error
	if o.Targets < 1 || o.Targets > 10_000 {
		errs = append(errs, fmt.Errorf("cannot serve %d targets: from 1 to 10000 are possible, each has a port", o.Targets))
	}
	if o.Series < 1 || o.Series > 1_000_000 {
		errs = append(errs, fmt.Errorf("cannot show %d series: from 1 to 1000000 are possible", o.Series))
	}
	if o.Sequences < 0 || o.Sequences > o.Series {
		errs = append(errs, fmt.Errorf("cannot make %d of %d series sequences", o.Sequences, o.Series))
	}
	if o.Format != Text && o.Format != OpenMetrics {
		errs = append(errs, fmt.Errorf("cannot write format %q: text and openmetrics are known", o.Format))
	}
	if o.Gzip != GzipOff && o.Gzip != GzipAccept && o.Gzip != GzipAlways {
		errs = append(errs, fmt.Errorf("cannot compress %q: off, accept and always are known", o.Gzip))
	}
	if !(o.Churn >= 0 && o.Churn <= 1) {
		errs = append(errs, fmt.Errorf("cannot rename %g of the series: it is a part, from 0 to 1", o.Churn))
	}
	if o.Interval < 0 {
		errs = append(errs, fmt.Errorf("cannot be scraped every %s", o.Interval))
	}
	return errors.Join(errs...)
}

// NewBody returns the body of targets with these options.
func NewBody(o Options) (*Body, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return newBody(o), nil
}
