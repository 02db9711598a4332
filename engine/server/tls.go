package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
)

// TLS are the TLS settings of a server.
type TLS struct {
	// Certificate of the server, as PEM text; those that signed it may follow.
	Cert string `alloy:"cert_pem,attr,optional"`
	// Key of the certificate, as PEM text.
	Key component.Secret `alloy:"key_pem,attr,optional"`
	// File with the certificate, a regular file of at most 1 MiB; it is read again when it changes.
	CertFile string `alloy:"cert_file,attr,optional"`
	// File with the key, a regular file of at most 1 MiB; it is read again when it changes.
	KeyFile string `alloy:"key_file,attr,optional"`
	// Client certificate policy: NoClientCert (the default), RequestClientCert,
	// RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert.
	ClientAuthType string `alloy:"client_auth_type,attr,optional"`
	// File with the CA certificates to verify clients with, a regular file of at most 1 MiB.
	ClientCAFile string `alloy:"client_ca_file,attr,optional"`
	// CA certificates to verify clients with, as PEM text.
	ClientCA string `alloy:"client_ca,attr,optional"`
	// Cipher suites to allow up to TLS 1.2, by their names in Go, comma-separated;
	// "" are Go's defaults.
	CipherSuites string `alloy:"cipher_suites,attr,optional"`
	// Lowest TLS version: VersionTLS12 (the default) or VersionTLS13;
	// VersionTLS10 and VersionTLS11 are not safe.
	MinVersion string `alloy:"min_version,attr,optional"`
}

var clientAuthTypes = map[string]tls.ClientAuthType{
	"":                           tls.NoClientCert,
	"NoClientCert":               tls.NoClientCert,
	"RequestClientCert":          tls.RequestClientCert,
	"RequireAnyClientCert":       tls.RequireAnyClientCert,
	"RequireClientCert":          tls.RequireAnyClientCert, // Prometheus's toolkit has both
	"VerifyClientCertIfGiven":    tls.VerifyClientCertIfGiven,
	"RequireAndVerifyClientCert": tls.RequireAndVerifyClientCert,
}

// version returns the TLS version of a name, with or without "Version".
func version(name string) (uint16, bool) {
	if name == "" {
		return tls.VersionTLS12, true
	}
	v, ok := config.TLSVersions[strings.TrimPrefix(name, "Version")]
	return uint16(v), ok
}

// suites returns the IDs of comma-separated names.
func suites(names string) (ids []uint16, err error) {
	if names == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		all := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
		i := slices.IndexFunc(all, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown cipher suite %q", name)
		}
		ids = append(ids, all[i].ID)
	}
	return ids, nil
}

// Validate returns all errors in the block, joined.
func (t *TLS) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	one := func(what, pem, pemName, file, fileName string, needed bool) {
		switch {
		case pem != "" && file != "":
			add("at most one of %s and %s may be set", pemName, fileName)
		case needed && pem == "" && file == "":
			add("%s is missing: set %s or %s", what, pemName, fileName)
		}
	}
	one("the certificate", t.Cert, "cert_pem", t.CertFile, "cert_file", true)
	one("the key", string(t.Key), "key_pem", t.KeyFile, "key_file", true)
	auth, ok := clientAuthTypes[t.ClientAuthType]
	if !ok {
		add("client_auth_type must be NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert, not %q", t.ClientAuthType)
	}
	verifies := auth == tls.VerifyClientCertIfGiven || auth == tls.RequireAndVerifyClientCert
	one("what "+t.ClientAuthType+" verifies clients with", t.ClientCA, "client_ca", t.ClientCAFile, "client_ca_file", verifies)
	if ok && !verifies && (t.ClientCA != "" || t.ClientCAFile != "") {
		add("client_ca and client_ca_file need client_auth_type VerifyClientCertIfGiven or RequireAndVerifyClientCert")
	}
	if _, err := suites(t.CipherSuites); err != nil {
		add("cipher_suites: %w", err)
	}
	if _, ok := version(t.MinVersion); !ok {
		add("min_version must be VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13, not %q", t.MinVersion)
	}
	return errors.Join(errs...)
}

func (t *TLS) files() (files []string) {
	for _, p := range []string{t.CertFile, t.KeyFile, t.ClientCAFile} {
		if abs, err := filepath.Abs(p); p != "" && err == nil {
			files = append(files, abs)
		}
	}
	return files
}

// load reads the files and returns a config for connections. t must be valid.
func (t *TLS) load(http2 bool) (*tls.Config, error) {
	cert, err := content("certificate", t.Cert, t.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := content("key", string(t.Key), t.KeyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the TLS certificate and key: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clientAuthTypes[t.ClientAuthType], NextProtos: []string{"http/1.1"}}
	if http2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	if t.ClientCA != "" || t.ClientCAFile != "" {
		ca, err := content("client CA", t.ClientCA, t.ClientCAFile)
		if err != nil {
			return nil, err
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("cannot use the TLS client CA: there is no certificate in it")
		}
	}
	c.MinVersion, _ = version(t.MinVersion)
	c.CipherSuites, err = suites(t.CipherSuites)
	return c, err
}

func content(what, pem, file string) ([]byte, error) {
	if pem != "" {
		return []byte(pem), nil
	}
	b, err := files.Read(file, files.MaxSecret)
	if err != nil {
		return nil, fmt.Errorf("cannot read the TLS %s: %w", what, err)
	}
	return b, nil
}
