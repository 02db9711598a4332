package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/pkg"
)

// servePackage makes the server serve a package with the module, which is signed if k is
// not nil.
func (s *elsewhere) servePackage(k *pkg.PrivateKey, value string) {
	files := map[string]string{
		pkg.ManifestName:    "name = 'acme'\nversion = '1.0.0'\napi = 1\nlicense = 'MIT'\n",
		"modules/m.alloy":   module(value),
		"modules/README.md": "Not a module.",
	}
	if k != nil {
		content := map[string][]byte{}
		for name, text := range files {
			content[name] = []byte(text)
		}
		files[pkg.SignatureName] = k.Sign(&pkg.Manifest{Name: "acme", Version: "1.0.0"}, pkg.SumsOf(content))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pack = files
}

func wantStartError(t *testing.T, l *harness, config, want string) {
	t.Helper()
	l.run(config)
	<-l.done
	if l.err == nil || !strings.Contains(l.err.Error(), want) {
		t.Errorf("got %v, want %q", l.err, want)
	}
}

// TestPolicySources: a source that the policy does not allow is not even fetched.
func TestPolicySources(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.options.UpdateLock = true
		wantStartError(t, l, importing+`policy { sources = ["https://other/*"] }`,
			"cannot import: the policy does not allow the source https://host/m, only https://other/*")
		if s.count() != 0 {
			t.Error("the source was fetched")
		}
	})
	withRemote(t, func(l *harness, s *elsewhere) {
		l.accept()
		l.start(importing + `policy { sources = ["https://host/*"] }`)
		l.wantValue("first")
		if err := l.reload(importing + `policy { sources = ["https://other/*"] }`); err == nil {
			t.Error("a policy that does not allow what runs was accepted")
		}
		l.wantValue("first")
	})
}

// TestPolicySignatures: remote content must be a signed package. Content without a
// signature is not used, and the running content stays.
func TestPolicySignatures(t *testing.T) {
	k, err := pkg.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := pkg.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	config := importing + fmt.Sprintf("policy { require_signature = [%q] }", k.Public())
	withRemote(t, func(l *harness, s *elsewhere) {
		l.accept()
		wantStartError(t, l, config, "requires a signature with key "+k.Public().ID()+", and https://host/m is not in a package")
	})
	withRemote(t, func(l *harness, s *elsewhere) {
		s.servePackage(&other, "first")
		l.accept()
		wantStartError(t, l, config, "is signed with key "+other.Public().ID()+", which is not trusted; required is a signature with key "+k.Public().ID())
	})
	withRemote(t, func(l *harness, s *elsewhere) {
		s.servePackage(&k, "first")
		l.accept()
		l.start(config)
		l.wantValue("first")
		s.servePackage(nil, "second")
		l.accept()
		l.lockChanged()
		l.wantValue("first")
		l.wantHealth(importID, component.Unhealthy, "is not signed: it has no "+pkg.SignatureName)
		s.servePackage(&k, "second") // the same content, signed later
		l.accept()
		l.lockChanged()
		l.wantValue("second")
		l.wantHealth(importID, component.Healthy, "")
	})
}
