package http

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of remote.http.
type Arguments struct {
	// URL to poll.
	URL string `alloy:"url,attr"`
	// Interval between two polls.
	PollFrequency time.Duration `alloy:"poll_frequency,attr,optional"`
	// Timeout of a poll; it must be shorter than poll_frequency.
	PollTimeout time.Duration `alloy:"poll_timeout,attr,optional"`
	// Whether the content is a secret. A secret is never displayed and can be used only
	// where a secret is expected.
	IsSecret bool `alloy:"is_secret,attr,optional"`

	// HTTP method of the request.
	Method string `alloy:"method,attr,optional"`
	// Headers to add to the request; they take precedence over the headers of the
	// client.
	Headers map[string]string `alloy:"headers,attr,optional"`
	// Body of the request.
	Body string `alloy:"body,attr,optional"`

	// Settings of the HTTP client.
	Client Client `alloy:"client,block,optional"`
}

// Client is the content of the block client.
type Client struct {
	HTTP httpclient.Arguments `alloy:",squash"`
}

// SetToDefault sets the defaults of Alloy.
func (c *Client) SetToDefault() { c.HTTP.SetToDefault() }

// Validate returns all errors in the block, joined.
func (c *Client) Validate() error { return c.HTTP.Validate() }

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{PollFrequency: time.Minute, PollTimeout: 10 * time.Second, Method: http.MethodGet}
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if a.PollFrequency <= 0 {
		errs = append(errs, fmt.Errorf("poll_frequency is %s, must be greater than 0", a.PollFrequency))
	}
	if a.PollTimeout <= 0 {
		errs = append(errs, fmt.Errorf("poll_timeout is %s, must be greater than 0", a.PollTimeout))
	} else if a.PollTimeout >= a.PollFrequency && a.PollFrequency > 0 {
		errs = append(errs, fmt.Errorf("poll_timeout is %s, must be less than poll_frequency, which is %s", a.PollTimeout, a.PollFrequency))
	}
	if _, err := http.NewRequest(a.Method, "http://localhost/", nil); err != nil || a.Method == "" {
		errs = append(errs, fmt.Errorf("method %q is no HTTP method", a.Method))
	}
	if req, err := http.NewRequest(http.MethodGet, a.URL, nil); err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may contain a password
		}
		errs = append(errs, fmt.Errorf("cannot parse url: %w", err))
	} else if s := req.URL.Scheme; s != "http" && s != "https" || req.URL.Host == "" {
		errs = append(errs, errors.New("url must begin with http:// or https:// and a host"))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		value := a.Headers[name]
		if !isHeader(name, value) {
			errs = append(errs, fmt.Errorf("headers: %q is no header, or has a value that cannot be one", name))
		}
	}
	return errors.Join(errs...)
}

// isHeader reports whether a header is valid in a request.
func isHeader(name, value string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(marks, r))
	}) && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// Exports of remote.http.
type Exports struct {
	// The response body without leading and trailing white space: a secret if is_secret
	// is set, otherwise a string.
	Content component.OptionalSecret `alloy:"content,attr"`
}
