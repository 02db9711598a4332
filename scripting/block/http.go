package block

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/scripting"
)

// Listen is the node's own address, which serves the routes of its script in
// addition to weir's address.
type Listen struct {
	// Address to listen on; "" is every address of the host.
	Address string `alloy:"address,attr,optional"`
	// Port to listen on; 0 is one that is free.
	Port int `alloy:"port,attr"`
	// ConnLimit is the maximum number of connections. Further connections wait. 0
	// means no limit.
	ConnLimit int `alloy:"conn_limit,attr,optional"`
	// ReadTimeout is the time limit for reading a request, including its body.
	ReadTimeout time.Duration `alloy:"read_timeout,attr,optional"`
	// IdleTimeout is how long a connection may wait for its next request.
	IdleTimeout time.Duration `alloy:"idle_timeout,attr,optional"`
	// GracefulShutdownTimeout is the time limit for requests in flight at
	// shutdown.
	GracefulShutdownTimeout time.Duration `alloy:"graceful_shutdown_timeout,attr,optional"`
	// TLS; without it HTTP is served in the clear.
	TLS *server.TLS `alloy:"tls,block,optional"`
}

// SetToDefault sets the defaults of package server.
func (b *Listen) SetToDefault() {
	var a server.Arguments
	a.SetToDefault()
	*b = Listen{ConnLimit: a.HTTP.ConnLimit, ReadTimeout: a.HTTP.ReadTimeout, IdleTimeout: a.HTTP.IdleTimeout, GracefulShutdownTimeout: a.GracefulShutdownTimeout}
}

// Validate returns all errors in the block, joined.
func (b *Listen) Validate() error {
	var errs []error
	if b.Port < 0 || b.Port > 65535 {
		errs = append(errs, fmt.Errorf("cannot use port = %d: it must be 0 to 65535", b.Port))
	}
	if b.ConnLimit < 0 {
		errs = append(errs, fmt.Errorf("cannot use conn_limit = %d: it must not be negative", b.ConnLimit))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"read_timeout", b.ReadTimeout}, {"idle_timeout", b.IdleTimeout}, {"graceful_shutdown_timeout", b.GracefulShutdownTimeout}} {
		if d.d <= 0 {
			errs = append(errs, fmt.Errorf("cannot use %s = %q: it must be more than 0", d.name, d.d))
		}
	}
	return errors.Join(errs...)
}

// Server returns the settings of the server, or nil if there is no block.
func (b *Listen) Server() *server.Arguments {
	if b == nil {
		return nil
	}
	a := &server.Arguments{GracefulShutdownTimeout: b.GracefulShutdownTimeout}
	a.HTTP.SetToDefault()
	a.HTTP.ListenAddress, a.HTTP.ListenPort, a.HTTP.ConnLimit, a.HTTP.TLS = b.Address, b.Port, b.ConnLimit, b.TLS
	a.HTTP.ReadTimeout, a.HTTP.IdleTimeout = b.ReadTimeout, b.IdleTimeout
	a.HTTP.WriteTimeout = 0 // it would include the time of the script; see answerTime
	return a
}

// Requests contains the limits of requests to a script's routes.
type Requests struct {
	// MaxBodySize is the largest body.
	MaxBodySize component.Size `alloy:"max_body_size,attr,optional"`
	// MaxRequests is the maximum number of concurrent requests.
	MaxRequests int `alloy:"max_requests,attr,optional"`
}

// SetToDefault sets the defaults.
func (b *Requests) SetToDefault() { *b = Requests{MaxBodySize: 1 << 20, MaxRequests: 100} }

// Validate checks the ranges.
func (b *Requests) Validate() error {
	if b.MaxBodySize < 0 || b.MaxBodySize > scripting.MaxString {
		return fmt.Errorf("cannot use script.requests.max_body_size = %d: it must be at most 8MiB", b.MaxBodySize)
	}
	if b.MaxRequests < 1 || b.MaxRequests > 10_000 {
		return fmt.Errorf("cannot use script.requests.max_requests = %d: it must be between 1 and 10000", b.MaxRequests)
	}
	return nil
}

// HTTP contains the connection settings of ctx.http.
type HTTP struct {
	// TLS settings of the connections.
	TLSConfig httpclient.TLSConfig `alloy:"tls_config,block,optional"`

	Proxy httpclient.Proxy `alloy:",squash"`
}

// Validate returns all errors in the settings, joined.
func (b *HTTP) Validate() error {
	a := b.client()
	return a.Validate()
}

func (b *HTTP) client() httpclient.Arguments {
	return httpclient.Arguments{TLSConfig: b.TLSConfig, Proxy: b.Proxy, EnableHTTP2: true}
}

// asking contains the additional settings of a script that needs ctx.http.
type asking struct {
	// HTTP is how ctx.http connects.
	HTTP HTTP `alloy:"http,block,optional"`
}

// serving contains the additional settings of a script that accepts requests.
type serving struct {
	// Requests bounds the requests to the script's routes.
	Requests Requests `alloy:"requests,block,optional"`
}

// both contains the additional settings of a script that does both.
type both struct {
	Asking  asking  `alloy:",squash"`
	Serving serving `alloy:",squash"`
}

// listenDocs is the manual of the block listen and of the limits of requests.
var listenDocs = map[string]string{
	"listen": "An additional address on which the script's routes are served. On weir's own address, they are below /api/v0/component/<id>/. " +
		"A port that is in use makes the node unhealthy and is tried again; a save does not close it, and requests in flight end under the old version.",
	"listen.address":                   "Address to listen on; without it every address of the host.",
	"listen.port":                      "Port to listen on; 0 is one that is free, which the health says.",
	"listen.conn_limit":                "Most connections at a time, further ones wait; 0 is no limit.",
	"listen.read_timeout":              "How long reading a request may take, its body included.",
	"listen.idle_timeout":              "How long a connection may wait for its next request.",
	"listen.graceful_shutdown_timeout": "How long requests in flight may take to end when the node is removed or moves to another address.",
	"listen.tls":                       "TLS; without it HTTP is served in the clear, to which a node that was started with TLS does not go back.",
	"listen.tls.cert_pem":              "Certificate of the server, as PEM text; those that signed it may follow.",
	"listen.tls.key_pem":               "Key of the certificate, as PEM text.",
	"listen.tls.cert_file":             "File with the certificate, a regular file of at most 1 MiB; it is read again when it changes.",
	"listen.tls.key_file":              "File with the key, a regular file of at most 1 MiB; it is read again when it changes.",
	"listen.tls.client_auth_type":      "Client certificate policy: NoClientCert (the default), RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert.",
	"listen.tls.client_ca_file":        "File with the CA certificates to verify clients with, a regular file of at most 1 MiB.",
	"listen.tls.client_ca":             "CA certificates to verify clients with, as PEM text.",
	"listen.tls.cipher_suites":         "Cipher suites to allow up to TLS 1.2, by their names in Go, comma-separated.",
	"listen.tls.min_version":           "Lowest TLS version: VersionTLS12 (the default) or VersionTLS13.",
	"script.requests":                  "Limits of requests to the script's routes.",
	"script.requests.max_body_size":    "The largest body, packed and unpacked; a larger one is answered 413.",
	"script.requests.max_requests":     "Most requests at a time; further ones are answered 503.",
}
