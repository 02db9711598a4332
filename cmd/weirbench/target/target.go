// Package target serves what a bench scrapes: many targets in one process, each
// with the body of a service in Go. It is no model of odd targets: the bodies
// are well formed and quick. Every target listens on a port of its own, as
// targets do, so that instance tells them apart.
//
// The rules to know. Scrape n of a target is a function of the target and n
// alone; nine of ten values change from one to the next. Sequence series show n
// itself (see SequenceBase), so who receives them can tell a lost scrape. n
// counts the scrapes that were answered, from 1.
package target

import (
	"errors"
	"fmt"
	"time"
)

// Format is the syntax of the bodies.
type Format string

// The formats; every scraper gets the one chosen, whatever it asks for.
const (
	Text        Format = "text"
	OpenMetrics Format = "openmetrics"
)

// contentType is how the format is called in HTTP.
func (f Format) contentType() string {
	if f == OpenMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// Gzip is when bodies are compressed.
type Gzip string

// The ways of compression.
const (
	GzipOff    Gzip = "off"    // never
	GzipAccept Gzip = "accept" // for who accepts it
	GzipAlways Gzip = "always" // for everybody
)

// Options say what there is to scrape.
type Options struct {
	Targets   int
	Series    int // of a target, the sequences among them
	Sequences int // series of a target that count its scrapes
	Format    Format
	Gzip      Gzip
	Churn     float64 // part of a target's series that gets another label value at each scrape, 0 to 1

	Interval time.Duration // at which a target is to be scraped, to count what is late; 0: nobody knows
}

// Defaults returns the options of the bench's usual load.
func Defaults() Options {
	return Options{Targets: 100, Series: 1000, Sequences: 5, Format: Text, Gzip: GzipOff}
}

// Validate says what is wrong with o.
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

// NewBody returns the body that targets with these options show.
func NewBody(o Options) (*Body, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return newBody(o), nil
}
