package remotewrite_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// sink accepts and records all requests with their bodies.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body [][]byte
	came chan struct{}
}

func newSink(t *testing.T) *sink {
	s := &sink{came: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.got, s.body = append(s.got, r), append(s.body, b)
		s.mu.Unlock()
		s.came <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return s
}

// one sends a batch to an endpoint with these arguments and returns the request
// that arrives.
func (s *sink) one(t *testing.T, args string) (*http.Request, []byte, *node) {
	t.Helper()
	n := startNew(t, endpoint(s.URL+"/api/v1/write?x=b&x=a&empty", args))
	n.accept(t, gauges(1, 3, t0))
	s.wait(t, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[len(s.got)-1], s.body[len(s.body)-1], n
}

func (s *sink) wait(t *testing.T, n *node) {
	t.Helper()
	select {
	case <-s.came:
	case <-time.After(time.Minute):
		t.Fatalf("no request came:\n%s", n.Logs())
	}
}

// signature returns the AWS signature of a request, computed independently from
// the documentation.
//
// Format:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func signature(r *http.Request, body []byte, secret, region, service string) string {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ := strings.Cut(rest, ",")
	var headers strings.Builder
	for _, name := range strings.Split(signed, ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	var query []string
	for _, p := range strings.Split(r.URL.RawQuery, "&") {
		if !strings.Contains(p, "=") {
			p += "="
		}
		query = append(query, p)
	}
	slices.Sort(query)
	sum := func(b []byte) string { h := sha256.Sum256(b); return hex.EncodeToString(h[:]) }
	canonical := strings.Join([]string{r.Method, r.URL.EscapedPath(), strings.Join(query, "&"), headers.String(), signed, sum(body)}, "\n")
	at := r.Header.Get("X-Amz-Date")
	scope := at[:8] + "/" + region + "/" + service + "/aws4_request"
	mac := func(key []byte, s string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(s))
		return m.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("AWS4"+secret), at[:8]), region), service), "aws4_request")
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+at+"\n"+scope+"\n"+sum([]byte(canonical))))
}

func TestSigV4(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	f := func(args, key, secret, region, service, token string) {
		t.Helper()
		r, body, n := newSink(t).one(t, args)
		auth := r.Header.Get("Authorization")
		if want := "AWS4-HMAC-SHA256 Credential=" + key + "/" + r.Header.Get("X-Amz-Date")[:8] + "/" + region + "/" + service + "/aws4_request"; !strings.HasPrefix(auth, want) {
			t.Errorf("got %s, want %s", auth, want)
		}
		if want := "Signature=" + signature(r, body, secret, region, service); !strings.HasSuffix(auth, want) {
			t.Errorf("got %s, want %s", auth, want)
		}
		diff(t, token, r.Header.Get("X-Amz-Security-Token"))
		n.stop()
		if logs := n.Logs(); strings.Contains(logs, secret) {
			t.Errorf("the secret is in the log:\n%s", logs)
		}
	}
	f("sigv4 {\n region = \"eu-west-1\"\n access_key = \"AKIA1\"\n secret_key = \"s3cr3t\"\n }", "AKIA1", "s3cr3t", "eu-west-1", "aps", "")
	f("sigv4 {\n region = \"eu-west-1\"\n access_key = \"AKIA1\"\n secret_key = \"s3cr3t\"\n service_name = \"execute-api\"\n }\n headers = { \"X-Scope-OrgID\" = \"t\" }",
		"AKIA1", "s3cr3t", "eu-west-1", "execute-api", "")

	// A role, from a token service.
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRole" || r.Form.Get("RoleArn") != "arn:role" || r.Form.Get("ExternalId") != "ext" {
			t.Errorf("asked for %v", r.Form)
		}
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
			<AccessKeyId>ASIA2</AccessKeyId><SecretAccessKey>r0le</SecretAccessKey><SessionToken>tok</SessionToken><Expiration>%s</Expiration>
			</Credentials></AssumeRoleResult></AssumeRoleResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	f("sigv4 {\n region = \"us-east-1\"\n access_key = \"AKIA1\"\n secret_key = \"s3cr3t\"\n role_arn = \"arn:role\"\n external_id = \"ext\"\n }",
		"ASIA2", "r0le", "us-east-1", "aps", "tok")

	// A profile, and the default chain.
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("[profile p]\nregion = ap-south-1\naws_access_key_id = AKIA3\naws_secret_access_key = pr0file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", config)
	f("sigv4 {\n profile = \"p\"\n }", "AKIA3", "pr0file", "ap-south-1", "aps", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIA4")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "env")
	t.Setenv("AWS_REGION", "sa-east-1")
	f("sigv4 { }", "AKIA4", "env", "sa-east-1", "aps", "")
}

// TestCredentialsThatComeLater: without credentials, samples wait, and the health
// says what is missing.
func TestCredentialsThatComeLater(t *testing.T) {
	for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"} {
		t.Setenv(v, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	config := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", config)
	s := newSink(t)
	home := componenttest.New(t, "prometheus.remote_write.test")
	n := start(t, home, clock.System{}, endpoint(s.URL, "queue_config {\n max_backoff = \"50ms\"\n }\n sigv4 {\n region = \"r\"\n }"))
	n.accept(t, gauges(1, 3, t0))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 12_000 {
		if strings.Contains(n.Logs(), "cannot authenticate by sigv4") {
			break
		}
		<-tick.C
	}
	if !strings.Contains(n.Logs(), "cannot authenticate by sigv4") || len(s.came) > 0 {
		t.Fatalf("it does not say what is missing:\n%s", n.Logs())
	}
	if err := os.WriteFile(config, []byte("[default]\naws_access_key_id = AKIA5\naws_secret_access_key = later\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.wait(t, n)
	n.stop()
	diff(t, map[string]uint64{}, n.Stats.Dropped())
}

func TestOAuth2(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		if err := r.ParseForm(); err != nil || user != "me" || pass != "s3cr3t" || r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("scope") != "write" {
			t.Errorf("asked by %s with %v", user, r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"tok","token_type":"bearer","expires_in":3600}`)
	}))
	defer tokens.Close()
	r, _, _ := newSink(t).one(t, fmt.Sprintf("oauth2 {\n client_id = \"me\"\n client_secret = \"s3cr3t\"\n scopes = [\"write\"]\n token_url = %q\n }", tokens.URL))
	diff(t, "Bearer tok", r.Header.Get("Authorization"))
}

// TestAzureAD requests tokens from an identity service like that of App Service.
// Entra ID itself has fixed host names that a test cannot replace.
func TestAzureAD(t *testing.T) {
	for _, v := range []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "MSI_ENDPOINT", "IMDS_ENDPOINT", "IDENTITY_SERVER_THUMBPRINT"} {
		t.Setenv(v, "") // restores the variable after the test
		os.Unsetenv(v)
	}
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != "h3ader" {
			t.Errorf("asked without the secret: %v", r.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"for %s %s","expires_on":"%d","resource":"r","token_type":"Bearer"}`,
			r.URL.Query().Get("resource"), r.URL.Query().Get("client_id"), time.Now().Add(time.Hour).Unix())
	}))
	defer identity.Close()
	t.Setenv("IDENTITY_ENDPOINT", identity.URL)
	t.Setenv("IDENTITY_HEADER", "h3ader")
	f := func(args, want string) {
		t.Helper()
		r, _, n := newSink(t).one(t, args)
		diff(t, "Bearer for "+want, r.Header.Get("Authorization"))
		n.stop()
		if strings.Contains(n.Logs(), "h3ader") || strings.Contains(n.Logs(), "Bearer") {
			t.Errorf("credentials are in the log:\n%s", n.Logs())
		}
	}
	id := "01234567-0123-0123-0123-0123456789ab"
	f("azuread {\n managed_identity { }\n }", "https://monitor.azure.com/")
	f("azuread {\n cloud = \"AzureChina\"\n managed_identity {\n client_id = \""+id+"\"\n }\n }", "https://monitor.azure.cn/ "+id)
	f("azuread {\n scope = \"https://own.example.com/.default\"\n managed_identity { }\n }", "https://own.example.com")
	f("azuread {\n sdk { }\n }", "https://monitor.azure.com/")
}

func TestGoogleIAM(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || strings.Count(r.Form.Get("assertion"), ".") != 2 {
			t.Errorf("asked with %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"tok","token_type":"Bearer","expires_in":3600}`)
	}))
	defer tokens.Close()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, id string) {
		t.Helper()
		b, err := json.Marshal(map[string]string{
			"type": "service_account", "project_id": "p", "private_key_id": id, "client_email": "a@b.example.com", "token_uri": tokens.URL,
			"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		})
		if err == nil {
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "key.json")
	s := newSink(t)
	args := fmt.Sprintf("google_iam {\n credentials_file = %q\n }", path)
	// The file is created later; the engine then calls Update.
	home := componenttest.New(t, "prometheus.remote_write.test")
	n := start(t, home, clock.System{}, endpoint(s.URL, args))
	diff(t, []string{path}, n.c.Sourced())
	n.accept(t, gauges(1, 3, t0))
	write(path, "1")
	if err := n.c.Update(decode(t, endpoint(s.URL, args))); err != nil {
		t.Fatal(err)
	}
	s.wait(t, n)
	diff(t, "Bearer tok", s.got[0].Header.Get("Authorization"))
	n.stop()
	if strings.Contains(n.Logs(), "PRIVATE KEY") {
		t.Errorf("the key is in the log:\n%s", n.Logs())
	}
}

// TestRoundRobinDNS: localhost has one or two addresses; a name without addresses
// is an ordinary error.
func TestRoundRobinDNS(t *testing.T) {
	s := newSink(t)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n := startNew(t, endpoint("http://localhost:"+port+"/", "round_robin_dns = true"))
	n.accept(t, gauges(1, 3, t0))
	s.wait(t, n)
	diff(t, "localhost:"+port, s.got[0].Host)
}
