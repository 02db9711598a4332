package syslog_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/natives/loki/source/syslog"
)

func TestTLS(t *testing.T) {
	made := httptest.NewTLSServer(nil) // the server has its own certificate
	defer made.Close()
	pair := made.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	settings := syslog.TLS{Cert: cert}
	settings.Key = component.Secret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	if err := settings.Validate(); err != nil {
		t.Fatal(err)
	}
	s := start(t, func(l *syslog.Listener) { l.TLS = &settings })
	pool := x509.NewCertPool()
	pool.AddCert(made.Certificate())
	conn, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: pool, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send(t, conn, "<13>1 - - - - - - secret\n")
	s.want(`{} secret`)

	a := *s.args
	a.Listeners = []*syslog.Listener{listener(nil)}
	if err := s.c.(component.Updater).Update(&a); !errors.Is(err, server.ErrPlaintext) {
		t.Errorf("going back to plaintext: got %v, want %v", err, server.ErrPlaintext)
	}

	// With a CA, senders without a certificate are refused.
	strict := settings
	strict.CA = cert
	a.Listeners = []*syslog.Listener{listener(func(l *syslog.Listener) { l.TLS = &strict })}
	if err := s.c.(component.Updater).Update(&a); err != nil {
		t.Fatal(err)
	}
	other, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: pool, ServerName: "example.com"})
	if err == nil { // in TLS 1.3, the client notices this with its first read
		defer other.Close()
		_, err = other.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a sender without a certificate was taken")
	}
}
