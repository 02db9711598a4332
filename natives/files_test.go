package natives_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives"
)

// notSources are the arguments that name a file, but none that a reload reads, or that
// TestFilesAreSources cannot write, with the reason.
var notSources = map[string]string{
	"discovery.kubernetes kubeconfig_file":      "its package has a test",
	"local.template destination":                "weir writes it",
	"local.template template_file":              "its package has a test",
	"loki.process stage.geoip.db":               "its package has a test",
	"loki.source.file legacy_positions_file":    "it is imported once",
	"loki.source.journal legacy_position.file":  "it is imported once",
	"prometheus.scrape scrape_failure_log_file": "weir writes it",
}

// namesFile and aboutFile find the arguments that name files, by their name and by
// their documentation.
var (
	namesFile = regexp.MustCompile(`(^|[._])(file|files|filename)$`)
	aboutFile = regexp.MustCompile(`^(The )?[Ff]iles?\b`)
)

// TestFilesAreSources: weir watches each file that an argument names. A new component
// must report its files in Sourced.
func TestFilesAreSources(t *testing.T) {
	golden := sections(t)
	left := map[string]string{}
	for name, reason := range notSources {
		left[name] = reason
	}
	n := 0
	for _, r := range natives.All() {
		for path, doc := range r.Doc.Args {
			if !namesFile.MatchString(path) && !aboutFile.MatchString(doc) {
				continue
			}
			name := r.Name + " " + path
			if _, ok := left[name]; ok {
				delete(left, name)
				continue
			}
			i := slices.IndexFunc(golden[r.Name], func(k known) bool { return k.path == path })
			if i < 0 {
				t.Errorf("%s is not in testdata/arguments.txt", name)
				continue
			}
			k := golden[r.Name][i]
			if strings.Contains(k.line, " block") || strings.Contains(k.line, " duration") || k.verdict != "" {
				continue
			}
			n++
			t.Run(name, func(t *testing.T) { checkSourced(t, r, golden[r.Name], k) })
		}
	}
	for name := range left {
		t.Errorf("%s does not exist or does not look like a file: remove it from notSources", name)
	}
	if n < 50 {
		t.Errorf("only %d arguments were tried", n)
	}
}

var pemArgument = regexp.MustCompile(`\b(cert_pem|key_pem|ca_pem|client_ca) = "[^"]*"`)

// checkSourced builds a component with an existing file as an argument.
func checkSourced(t *testing.T, r component.Registration, all []known, k known) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "this.json"), filepath.Join(dir, "other.json")
	cert := selfSigned(t)
	text, line, _, _ := written(r.Name, all, k)
	lines := strings.Split(text, "\n")
	attribute, value, _ := strings.Cut(lines[line-1], " = ")
	if strings.HasPrefix(value, "[") {
		lines[line-1] = attribute + " = [" + strconv.Quote(path) + "]"
	} else {
		lines[line-1] = attribute + " = " + strconv.Quote(path)
	}
	text = strings.ReplaceAll(strings.Join(lines, "\n"), `"/f"`, strconv.Quote(other))
	text = pemArgument.ReplaceAllString(text, "$1 = "+strings.ReplaceAll(strconv.Quote(cert), "$", "$$"))
	args := r.NewArgs()
	if ds := decode(text, args); ds.HasErrors() {
		t.Fatalf("%s\n%s", ds, text)
	}
	var errs []error
	for _, content := range []string{cert, "[[rules]]\nid = \"x\"\nregex = \"x\"\n"} {
		for _, p := range []string{path, other} {
			if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		node := componenttest.New(t, r.Name+".x")
		node.Services["http"] = service.HTTPData{}
		c, err := r.Build(node.Options(), args, nil)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s, ok := c.(component.Sourced)
		if !ok || !slices.Contains(s.Sourced(), path) {
			t.Error("the file is not in Sourced: weir does not notice that it changes")
		}
		return
	}
	t.Fatalf("%v\n%s", errors.Join(errs...), text)
}

// selfSigned returns a certificate and its key as PEM, in one text.
func selfSigned(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for kind, der := range map[string][]byte{"CERTIFICATE": der, "PRIVATE KEY": private} {
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
