package http

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine/component"
)

// Arguments are those of the block http.
type Arguments struct {
	// Auth asks who comes over TCP for a name and a password.
	Auth *AuthArguments `alloy:"auth,block,optional"`
	// TLS makes the port one of HTTPS. Without it, it serves plaintext.
	TLS *TLSArguments `alloy:"tls,block,optional"`
}

// AuthArguments are those of http > auth.
type AuthArguments struct {
	// Basic is HTTP basic authentication.
	Basic *BasicArguments `alloy:"basic,block,optional"`
	// Filter says for which paths; nil is for all.
	Filter *FilterArguments `alloy:"filter,block,optional"`
}

// Warnings says when nobody is asked for anything, which Alloy takes too.
func (a *AuthArguments) Warnings() []string {
	switch f := a.Filter; {
	case a.Basic == nil:
		return []string{"auth has no effect without a block basic: clients are not asked for a password"}
	case f != nil && f.AuthenticateMatchingPaths && len(f.Paths) == 0:
		return []string{"filter without paths matches no request: clients are not asked for a password"}
	}
	return nil
}

// BasicArguments are those of http > auth > basic.
type BasicArguments struct {
	// Username is who may come.
	Username string `alloy:"username,attr"`
	// Password is what they must know.
	Password component.Secret `alloy:"password,attr"`
}

// FilterArguments are those of http > auth > filter.
type FilterArguments struct {
	// Paths are beginnings of paths.
	Paths []string `alloy:"paths,attr,optional"`
	// AuthenticateMatchingPaths says whether the paths are those to
	// authenticate, or those that are left out.
	AuthenticateMatchingPaths bool `alloy:"authenticate_matching_paths,attr,optional"`
}

// SetToDefault sets the default of Alloy.
func (f *FilterArguments) SetToDefault() { f.AuthenticateMatchingPaths = true }

// TLSArguments are those of http > tls.
type TLSArguments struct {
	// Cert is the certificate, with those that lead to its authority.
	Cert string `alloy:"cert_pem,attr,optional"`
	// CertFile is a file with it, read again when it changes.
	CertFile string `alloy:"cert_file,attr,optional"`
	// Key is the certificate's key.
	Key component.Secret `alloy:"key_pem,attr,optional"`
	// KeyFile is a file with it, read again when it changes.
	KeyFile string `alloy:"key_file,attr,optional"`
	// ClientCA are the authorities that clients' certificates must be of.
	ClientCA string `alloy:"client_ca_pem,attr,optional"`
	// ClientCAFile is a file with them, read again when it changes.
	ClientCAFile string `alloy:"client_ca_file,attr,optional"`
	// ClientAuth is what is asked of clients.
	ClientAuth ClientAuth `alloy:"client_auth_type,attr,optional"`
	// CipherSuites for TLS 1.2 and below; empty for Go's.
	CipherSuites []CipherSuite `alloy:"cipher_suites,attr,optional"`
	// CurvePreferences are the curves, best first; empty for Go's.
	CurvePreferences []Curve `alloy:"curve_preferences,attr,optional"`
	// MinVersion is the oldest version; Go's default without it.
	MinVersion Version `alloy:"min_version,attr,optional"`
	// MaxVersion is the newest version; Go's default without it.
	MaxVersion Version `alloy:"max_version,attr,optional"`

	// WindowsFilter is refused by name.
	WindowsFilter *WindowsFilter `alloy:"windows_certificate_filter,block,optional"`
}

// WindowsFilter are the blocks of http > tls > windows_certificate_filter.
type WindowsFilter struct {
	Server map[string]any `alloy:"server,block,optional"`
	Client map[string]any `alloy:"client,block,optional"`
}

// Validate returns all that is wrong with the arguments, joined. Files are not
// read.
func (a *TLSArguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.WindowsFilter != nil {
		add("windows_certificate_filter is not supported: give the certificate with cert_file and key_file")
	}
	cert, key := a.Cert != "" || a.CertFile != "", a.Key != "" || a.KeyFile != ""
	switch {
	case a.Cert != "" && a.CertFile != "":
		add("at most one of cert_pem and cert_file may be set")
	case !cert && a.WindowsFilter == nil:
		add("tls needs a certificate: cert_pem or cert_file, and it must not be empty")
	}
	switch {
	case a.Key != "" && a.KeyFile != "":
		add("at most one of key_pem and key_file may be set")
	case !key && a.WindowsFilter == nil:
		add("tls needs the certificate's key: key_pem or key_file, and it must not be empty")
	}
	switch {
	case a.ClientCA != "" && a.ClientCAFile != "":
		add("at most one of client_ca_pem and client_ca_file may be set")
	case a.ClientAuth == 0 && a.ClientCA != "":
		add("client_ca_pem has no use when client_auth_type is NoClientCert")
	case a.ClientAuth == 0 && a.ClientCAFile != "":
		add("client_ca_file has no use when client_auth_type is NoClientCert")
	}
	if a.MinVersion != 0 && a.MaxVersion != 0 && a.MinVersion > a.MaxVersion {
		add("min_version %s is newer than max_version %s", a.MinVersion, a.MaxVersion)
	}
	if len(errs) == 0 {
		errs = append(errs, a.inline())
	}
	return errors.Join(errs...)
}

// inline returns what is wrong with the PEMs that are in the config itself.
func (a *TLSArguments) inline() error {
	var errs []error
	if a.Cert != "" && a.Key != "" {
		if _, err := pair([]byte(a.Cert), []byte(a.Key), "cert_pem", "key_pem"); err != nil {
			errs = append(errs, err)
		}
	}
	if a.ClientCA != "" {
		if _, err := pool([]byte(a.ClientCA), "client_ca_pem"); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// files returns the files that the arguments name.
func (a *Arguments) files() (files []string) {
	if a.TLS != nil {
		files = []string{a.TLS.CertFile, a.TLS.KeyFile, a.TLS.ClientCAFile}
	}
	return slices.DeleteFunc(files, func(f string) bool { return f == "" })
}
