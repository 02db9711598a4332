package httpclient

import (
	"crypto/tls"
	"errors"

	"github.com/prometheus/common/config"
)

// Check returns all errors in the settings, joined. It is not called Validate,
// because the components with an HTTP client validate the block as a part of
// their arguments.
func (t *TLSConfig) Check() error { return t.validate("tls_config") }

// Files returns the absolute paths of the files in the settings, in the order of
// the arguments.
func (t *TLSConfig) Files() []string { return (&Arguments{TLSConfig: *t}).Files() }

// Load returns the settings for a client that does not speak HTTP, with the
// content of the files. Load them again when one of Files changes.
func (t *TLSConfig) Load() (*tls.Config, error) {
	c := t.config()
	var l loader
	l.tls(&c)
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	return config.NewTLSConfig(&c)
}
