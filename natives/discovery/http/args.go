package http

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of discovery.http.
type Arguments struct {
	// URL to get the targets from, as JSON in the format of Prometheus's HTTP
	// service discovery.
	URL string `alloy:"url,attr"`
	// Interval between two requests. It is also the timeout of a request.
	RefreshInterval time.Duration `alloy:"refresh_interval,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{RefreshInterval: time.Minute}
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	switch u, err := url.Parse(a.URL); {
	case err != nil:
		errs = append(errs, fmt.Errorf("url: %w", err))
	case u.Scheme != "http" && u.Scheme != "https":
		errs = append(errs, fmt.Errorf("url %q must begin with http:// or https://", a.URL))
	case u.Host == "":
		errs = append(errs, fmt.Errorf("url %q has no host", a.URL))
	}
	if a.RefreshInterval <= 0 {
		errs = append(errs, fmt.Errorf("refresh_interval is %s, must be greater than 0", a.RefreshInterval))
	}
	return errors.Join(append(errs, a.Client.Validate())...)
}
