//go:build integration

package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/control"
)

// issuer signs certificates for 127.0.0.1.
type issuer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	last int64
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.cert, i.key = i.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return i
}

func (i *issuer) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.last++
	c.SerialNumber, c.Subject = big.NewInt(i.last), pkix.Name{CommonName: fmt.Sprint("test ", i.last)}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := i.cert, i.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return out, key
}

// issue returns a certificate and its key in PEM format, and its serial number.
func (i *issuer) issue() (cert, key string, serial int64) {
	i.t.Helper()
	c, k := i.sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		i.t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", c.Raw), block("EC PRIVATE KEY", der), i.last
}

// poller requests /metrics continuously until stop.
type poller struct {
	wg       sync.WaitGroup
	done     chan struct{}
	asked    atomic.Int64 // answered with data
	told     atomic.Int64 // responses that require HTTPS
	failures chan error   // the first few

	mu   sync.Mutex
	data []span // the times of request and response for answers with data
}

type span struct{ from, to time.Time }

func poll(url string, client *http.Client) *poller {
	p := &poller{done: make(chan struct{}), failures: make(chan error, 10)}
	p.wg.Go(func() {
		for {
			select {
			case <-p.done:
				return
			default:
			}
			from := time.Now()
			if err := fetchMetrics(url, client); err != nil {
				if errors.Is(err, errUseHTTPS) {
					p.told.Add(1)
					continue
				}
				select {
				case p.failures <- fmt.Errorf("%s after the beginning of the minute: %w", from.Format("05.000"), err):
				default:
				}
				continue
			}
			p.asked.Add(1)
			p.mu.Lock()
			p.data = append(p.data, span{from, time.Now()})
			p.mu.Unlock()
		}
	})
	return p
}

// stop returns the failures.
func (p *poller) stop() (errs []error) {
	close(p.done)
	p.wg.Wait()
	close(p.failures)
	for err := range p.failures {
		errs = append(errs, err)
	}
	return errs
}

var errUseHTTPS = errors.New("told to use HTTPS")

func fetchMetrics(url string, client *http.Client) error {
	res, err := client.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case strings.Contains(string(body), "go_goroutines "):
		return nil
	case res.StatusCode == 400 && strings.Contains(string(body), "HTTPS server"):
		return errUseHTTPS
	}
	return fmt.Errorf("%s: %s", res.Status, body)
}

const secureConfig = `
local.file "cert" {
  filename = "DIR/cert.pem"
}

local.file "key" {
  filename  = "DIR/key.pem"
  is_secret = true
}

http {
  tls {
    cert_pem = local.file.cert.content
    key_pem  = local.file.key.content
  }
}
`

// TestPlaintextToTLS: weir serves /metrics continuously while its port changes to
// HTTPS and its certificate is renewed, through exports and through files. From
// the moment the reload is reported, nothing is served in plaintext, and no TLS
// request fails.
func TestPlaintextToTLS(t *testing.T) {
	t.Parallel()
	ca := newIssuer(t)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	dir := t.TempDir()
	cert, key, serial := ca.issue()
	write(t, filepath.Join(dir, "cert.pem"), cert)
	write(t, filepath.Join(dir, "key.pem"), key)
	config := filepath.Join(dir, "config.alloy")
	write(t, config, "prometheus.exporter.self \"weir\" { }\n")
	weir := startWeir(t, dir)
	addr := strings.TrimPrefix(weir.url, "http://")

	client := func(keep bool) *http.Client {
		return &http.Client{Timeout: patience, Transport: &http.Transport{
			DisableKeepAlives: !keep, ForceAttemptHTTP2: keep, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	}
	plain := []*poller{poll("http://"+addr+"/metrics", client(true)), poll("http://"+addr+"/metrics", client(false))}
	eventually(t, "plaintext is served", func() error {
		if plain[0].asked.Load() < 5 || plain[1].asked.Load() < 5 {
			return errors.New("not yet")
		}
		return nil
	})

	write(t, config, strings.ReplaceAll(secureConfig, "DIR", dir))
	weir.await(1, `reloaded config\.alloy.*`)
	switched := time.Now()
	secure := []*poller{poll("https://"+addr+"/metrics", client(true)), poll("https://"+addr+"/metrics", client(false))}
	awaitSerial := func(want int64) {
		t.Helper()
		eventually(t, fmt.Sprintf("certificate %d is served", want), func() error {
			c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
			if err != nil {
				return fatal{err}
			}
			defer c.Close()
			if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != want {
				return fmt.Errorf("got certificate %d", got)
			}
			return nil
		})
	}
	awaitSerial(serial)
	replace := func(name, content string) {
		t.Helper()
		write(t, filepath.Join(dir, name+".new"), content)
		if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		cert, key, serial = ca.issue()
		replace("cert.pem", cert)
		replace("key.pem", key)
		awaitSerial(serial)
	}
	// An invalid certificate: the last good one stays in use, and the page shows
	// the error.
	replace("cert.pem", "nonsense")
	eventually(t, "the service is unhealthy", func() error {
		if err := fetchHealth(weir, client(false)); err == nil || !strings.Contains(err.Error(), "cannot use cert_pem") {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	awaitSerial(serial)
	replace("cert.pem", cert)
	eventually(t, "the service is healthy again", func() error { return fetchHealth(weir, client(false)) })

	// The same with files, behind a symbolic link as in a Kubernetes Secret.
	swap := func() int64 {
		t.Helper()
		cert, key, serial := ca.issue()
		version := filepath.Join(dir, fmt.Sprint("secret", serial))
		write(t, filepath.Join(version, "tls.crt"), cert)
		write(t, filepath.Join(version, "tls.key"), key)
		if err := os.Symlink(version, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "secret")); err != nil {
			t.Fatal(err)
		}
		return serial
	}
	serial = swap()
	write(t, config, strings.ReplaceAll("http {\n  tls {\n    cert_file = \"DIR/secret/tls.crt\"\n    key_file  = \"DIR/secret/tls.key\"\n  }\n}\n", "DIR", dir))
	awaitSerial(serial)
	for range 5 {
		awaitSerial(swap())
	}

	// HTTPS cannot be disabled again.
	write(t, config, "prometheus.exporter.self \"weir\" { }\n")
	weir.await(1, `cannot reload config\.alloy: .*block http is gone .*restart weir`)
	awaitSerial(ca.last)
	eventually(t, "enough was asked over TLS", func() error {
		for i, p := range secure {
			if n := p.asked.Load(); n < 50 {
				return fmt.Errorf("TLS client %d made only %d requests", i, n)
			}
		}
		return nil
	})

	for i, p := range plain {
		for _, err := range p.stop() {
			t.Errorf("plaintext client %d: %v", i, err)
		}
		if p.told.Load() == 0 {
			t.Errorf("plaintext client %d was never told to use HTTPS", i)
		}
		for _, s := range p.data {
			if s.from.After(switched) {
				t.Errorf("plaintext client %d got data %s after the reload was reported", i, s.from.Sub(switched))
				break
			}
		}
	}
	for i, p := range secure {
		for _, err := range p.stop() {
			t.Errorf("TLS client %d: %v", i, err)
		}
		t.Logf("TLS client %d: %d requests, %d in plaintext before", i, p.asked.Load(), plain[i].asked.Load())
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestWaitsForItsCertificate: if weir starts before its certificate exists, it
// serves no requests until then.
func TestWaitsForItsCertificate(t *testing.T) {
	t.Parallel()
	ca := newIssuer(t)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), strings.ReplaceAll(secureConfig, "DIR", dir))
	weir := startWeir(t, dir)
	addr := strings.TrimPrefix(weir.url, "https://")
	insecure := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	secure := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	if err := fetchMetrics("http://"+addr+"/metrics", insecure); !errors.Is(err, errUseHTTPS) {
		t.Errorf("plaintext: got %v", err)
	}
	if err := fetchMetrics("https://"+addr+"/metrics", secure); err == nil || !strings.Contains(err.Error(), "internal error") {
		t.Errorf("TLS: got %v", err)
	}
	cert, key, _ := ca.issue()
	write(t, filepath.Join(dir, "key.pem"), key)
	write(t, filepath.Join(dir, "cert.pem"), cert)
	eventually(t, "it serves", func() error {
		if err := fetchMetrics("http://"+addr+"/metrics", insecure); !errors.Is(err, errUseHTTPS) {
			return fatal{fmt.Errorf("plaintext: got %w", err)}
		}
		return fetchMetrics("https://"+addr+"/metrics", secure)
	})
}

// fetchHealth requests the health with the token, to get the messages.
func fetchHealth(weir *weirRun, client *http.Client) error {
	token, err := os.ReadFile(filepath.Join(weir.storage, control.TokenFile))
	if err != nil {
		return err
	}
	req, err := http.NewRequest("GET", strings.Replace(weir.url, "http://", "https://", 1)+"/-/healthy", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != 200 {
		err = errors.New(string(body))
	}
	return err
}
