package http

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
)

// ClientAuth specifies the client certificate, with Go's names.
type ClientAuth tls.ClientAuthType

// CipherSuite is a cipher suite, by the names of IANA.
type CipherSuite uint16

// Curve is an elliptic curve.
type Curve tls.CurveID

// Version is a version of TLS: TLS10 to TLS13.
type Version uint16

var (
	clientAuths = map[string]ClientAuth{
		"NoClientCert":               ClientAuth(tls.NoClientCert),
		"RequestClientCert":          ClientAuth(tls.RequestClientCert),
		"RequireAnyClientCert":       ClientAuth(tls.RequireAnyClientCert),
		"VerifyClientCertIfGiven":    ClientAuth(tls.VerifyClientCertIfGiven),
		"RequireAndVerifyClientCert": ClientAuth(tls.RequireAndVerifyClientCert),
	}
	curves   = map[string]Curve{"CurveP256": Curve(tls.CurveP256), "CurveP384": Curve(tls.CurveP384), "CurveP521": Curve(tls.CurveP521), "X25519": Curve(tls.X25519)}
	versions = map[string]Version{"TLS10": tls.VersionTLS10, "TLS11": tls.VersionTLS11, "TLS12": tls.VersionTLS12, "TLS13": tls.VersionTLS13}
)

// UnmarshalText parses a name.
func (c *ClientAuth) UnmarshalText(text []byte) error { return named(c, clientAuths, text) }

// MarshalText returns the name.
func (c ClientAuth) MarshalText() ([]byte, error) { return nameOf(c, clientAuths) }

// UnmarshalText parses a name.
func (c *Curve) UnmarshalText(text []byte) error { return named(c, curves, text) }

// MarshalText returns the name.
func (c Curve) MarshalText() ([]byte, error) { return nameOf(c, curves) }

// UnmarshalText parses a name.
func (v *Version) UnmarshalText(text []byte) error { return named(v, versions, text) }

// MarshalText returns the name, or nothing if there is no version.
func (v Version) MarshalText() ([]byte, error) { return nameOf(v, versions) }

// String returns the name.
func (v Version) String() string { name, _ := v.MarshalText(); return string(name) }

// UnmarshalText parses a name.
func (c *CipherSuite) UnmarshalText(text []byte) error { return named(c, suites(), text) }

// MarshalText returns the name.
func (c CipherSuite) MarshalText() ([]byte, error) {
	return []byte(tls.CipherSuiteName(uint16(c))), nil
}

// suites returns Go's cipher suites, and those without forward secrecy that
// Alloy accepts.
func suites() map[string]CipherSuite {
	all := map[string]CipherSuite{}
	for _, s := range tls.CipherSuites() {
		all[s.Name] = CipherSuite(s.ID)
	}
	for _, id := range []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_CBC_SHA, tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_AES_256_GCM_SHA384} {
		all[tls.CipherSuiteName(id)] = CipherSuite(id)
	}
	return all
}

func named[T any](to *T, names map[string]T, text []byte) error {
	v, ok := names[string(text)]
	if !ok {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	*to = v
	return nil
}

func nameOf[T comparable](v T, names map[string]T) ([]byte, error) {
	for name, w := range names {
		if v == w {
			return []byte(name), nil
		}
	}
	return nil, nil
}

// config reads the files and returns the TLS config. An error is a
// *component.ArgumentError.
func (a *TLSArguments) config() (*tls.Config, error) {
	cert, certName, err := content(a.Cert, a.CertFile, "cert_pem", "cert_file")
	if err != nil {
		return nil, err
	}
	key, keyName, err := content(string(a.Key), a.KeyFile, "key_pem", "key_file")
	if err != nil {
		return nil, err
	}
	p, err := pair(cert, key, certName, keyName)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		Certificates: []tls.Certificate{p},
		MinVersion:   uint16(a.MinVersion),
		MaxVersion:   uint16(a.MaxVersion),
		ClientAuth:   tls.ClientAuthType(a.ClientAuth),
		NextProtos:   []string{"http/1.1"},
	}
	for _, s := range a.CipherSuites {
		c.CipherSuites = append(c.CipherSuites, uint16(s))
	}
	for _, s := range a.CurvePreferences {
		c.CurvePreferences = append(c.CurvePreferences, tls.CurveID(s))
	}
	if a.http2() {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	if a.ClientCA == "" && a.ClientCAFile == "" {
		return c, nil
	}
	ca, name, err := content(a.ClientCA, a.ClientCAFile, "client_ca_pem", "client_ca_file")
	if err != nil {
		return nil, err
	}
	if c.ClientCAs, err = pool(ca, name); err != nil {
		return nil, &component.ArgumentError{Path: "tls." + name, Err: err}
	}
	return c, nil
}

// http2 reports whether no setting prevents HTTP/2 (RFC 9113, 9.2).
func (a *TLSArguments) http2() bool {
	weak := func(s CipherSuite) bool {
		name := tls.CipherSuiteName(uint16(s))
		return strings.HasPrefix(name, "TLS_RSA_") || strings.Contains(name, "_CBC_")
	}
	return !slices.ContainsFunc(a.CipherSuites, weak) && (a.MaxVersion == 0 || a.MaxVersion >= tls.VersionTLS12)
}

// clients returns an identification of the client certificate settings:
// connections that were accepted with other settings must be closed.
func (a *TLSArguments) clients(c *tls.Config) string {
	if c.ClientAuth == tls.NoClientCert {
		return ""
	}
	ca := []byte(a.ClientCA)
	if a.ClientCAFile != "" {
		ca, _ = files.Read(a.ClientCAFile, files.MaxSecret) // it was read a moment ago
	}
	return fmt.Sprintf("%d %x", c.ClientAuth, sha256.Sum256(ca))
}

// answers reports whether the files can be read without a long wait. If not,
// Update finds errors in them.
func (a *TLSArguments) answers() bool {
	if a == nil {
		return true
	}
	return !slices.ContainsFunc([]string{a.CertFile, a.KeyFile, a.ClientCAFile}, func(path string) bool { return path != "" && files.Answers(path) != nil })
}

// content returns the content of an argument or of the file that another
// argument names, and which of the two it was.
func content(text, file, textName, fileName string) (data []byte, name string, err error) {
	if file == "" {
		return []byte(text), textName, nil
	}
	if data, err = files.Read(file, files.MaxSecret); err != nil {
		return nil, fileName, &component.ArgumentError{Path: "tls." + fileName, Err: fmt.Errorf("cannot read %s: %w", fileName, err)}
	}
	return data, fileName, nil
}

// pair returns a certificate with its key. The error, a
// *component.ArgumentError, names the wrong argument and contains no part of
// its content.
func pair(cert, key []byte, certName, keyName string) (tls.Certificate, error) {
	blame := func(name, format string, args ...any) (tls.Certificate, error) {
		return tls.Certificate{}, &component.ArgumentError{Path: "tls." + name, Err: fmt.Errorf(format, args...)}
	}
	switch kinds := blocks(cert); {
	case slices.Contains(kinds, "CERTIFICATE"):
	case slices.ContainsFunc(kinds, isKey):
		return blame(certName, "cannot use %s: there is a key in it and no certificate", certName)
	default:
		return blame(certName, "cannot use %s: there is no certificate in PEM in it", certName)
	}
	for rest := cert; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil && b.Type == "CERTIFICATE" {
			return blame(certName, "cannot use %s: %w", certName, err)
		}
	}
	switch kinds := blocks(key); {
	case slices.ContainsFunc(kinds, isKey):
	case slices.Contains(kinds, "CERTIFICATE"):
		return blame(keyName, "cannot use %s: there is a certificate in it and no key", keyName)
	default:
		return blame(keyName, "cannot use %s: there is no key in PEM in it", keyName)
	}
	if strings.Contains(string(key), "ENCRYPTED") {
		return blame(keyName, "cannot use %s: the key is encrypted, give it without a password", keyName)
	}
	p, err := tls.X509KeyPair(cert, key)
	switch {
	case err == nil:
		return p, nil
	case strings.Contains(err.Error(), "match"):
		return blame(certName, "%s is the certificate of another key than %s", certName, keyName)
	}
	return blame(keyName, "cannot use %s: cannot %s", keyName, strings.TrimPrefix(strings.TrimPrefix(err.Error(), "tls: "), "failed to "))
}

// blocks returns the types of the PEM blocks in a text.
func blocks(text []byte) (kinds []string) {
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		kinds = append(kinds, b.Type)
	}
	return kinds
}

func isKey(kind string) bool { return strings.HasSuffix(kind, "PRIVATE KEY") }

func pool(data []byte, name string) (*x509.CertPool, error) {
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("cannot use %s: there is no certificate in it", name)
	}
	return p, nil
}

// errClosed is the error of a handshake while there is no certificate.
var errClosed = errors.New("there is no certificate yet")

// noCertificate is used while the certificate is not known.
var noCertificate = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errClosed }}
