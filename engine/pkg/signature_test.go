package pkg_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/pkg"
)

const manifestText = "name = 'acme/http'\nversion = '1.2.0'\napi = 1\nlicense = 'MIT'\n"

func newKey(t *testing.T) pkg.PrivateKey {
	t.Helper()
	k, err := pkg.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// lockAndSign writes the checksums of the package in dir and their signature.
func lockAndSign(t *testing.T, dir string, k pkg.PrivateKey) pkg.Sums {
	t.Helper()
	m, err := pkg.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := pkg.Compute(dir)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, pkg.SumsName, s.Text())
	put(t, dir, pkg.SignatureName, k.Sign(m, s))
	return s
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSignature: a signed package is verified, and each kind of tampering is refused
// with the key, the file, and the expected and the actual digest.
func TestSignature(t *testing.T) {
	k, other := newKey(t), newKey(t)
	keys := []pkg.PublicKey{other.Public(), k.Public()}
	dir := write(t, pkg.ManifestName, manifestText, "scripts/a.lua", "return 1\n")
	before := lockAndSign(t, dir, k)
	verify := func(keys []pkg.PublicKey) (*pkg.Signature, error) {
		t.Helper()
		s, err := pkg.Compute(dir)
		if err != nil {
			t.Fatal(err)
		}
		return pkg.VerifySignature(dir, s, keys)
	}
	g, err := verify(keys)
	if err != nil {
		t.Fatal(err)
	}
	if want := "acme/http 1.2.0 " + before.Digest(); g.KeyID != k.Public().ID() || g.Comment != want {
		t.Errorf("got key %s and comment %q, want %s and %q", g.KeyID, g.Comment, k.Public().ID(), want)
	}
	if _, err := pkg.Compute(dir); err != nil {
		t.Fatal(err)
	}
	refused := func(keys []pkg.PublicKey, want ...string) {
		t.Helper()
		_, err := verify(keys)
		if err == nil {
			t.Fatal("the package was accepted")
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("got %v\nwant %q", err, w)
			}
		}
	}
	// Another key, even with the same ID.
	refused([]pkg.PublicKey{other.Public()}, "is signed with key "+k.Public().ID()+", which is not trusted; required is a signature with key "+other.Public().ID())

	// A changed file.
	put(t, dir, "scripts/a.lua", "return 2\n")
	now, _ := pkg.Compute(dir)
	refused(keys, "has changed since it was signed with key "+k.Public().ID(), "expected "+before.Digest()+", got "+now.Digest(), "scripts/a.lua was changed: expected sha256:")

	// Its checksum is changed as well.
	put(t, dir, pkg.SumsName, now.Text())
	refused(keys, "the signature in "+pkg.SignatureName+" with key "+k.Public().ID()+" is not one of "+pkg.SumsName, "expected "+before.Digest()+", got "+now.Digest())

	// An attacker signs with a key of their own and claims the ID of the trusted one.
	lockAndSign(t, dir, other)
	refused([]pkg.PublicKey{k.Public()}, "which is not trusted")

	// A forged comment, no signature, and no signature at all.
	put(t, dir, "scripts/a.lua", "return 1\n")
	lockAndSign(t, dir, k)
	file := filepath.Join(dir, pkg.SignatureName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, pkg.SignatureName, strings.Replace(string(text), "acme/http 1.2.0", "acme/http 9.9.9", 1))
	refused(keys, "is not one of")
	put(t, dir, pkg.SignatureName, "nonsense\n")
	refused(keys, file+" is not a signature of minisign")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused(keys, "is not signed: it has no "+pkg.SignatureName)
	if _, err := verify(keys); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want one that wraps fs.ErrNotExist", err)
	}
}

// TestMinisign: minisign verifies our signatures and we verify its.
func TestMinisign(t *testing.T) {
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Skip("there is no minisign")
	}
	k := newKey(t)
	dir := write(t, pkg.ManifestName, manifestText, "scripts/a.lua", "return 1\n")
	s := lockAndSign(t, dir, k)
	sums := filepath.Join(dir, pkg.SumsName)
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("minisign", args...).CombinedOutput(); err != nil {
			t.Fatalf("minisign %v: %v\n%s", args, err, out)
		}
	}
	run("-V", "-P", k.Public().String(), "-m", sums)
	secret, public := filepath.Join(t.TempDir(), "k"), filepath.Join(t.TempDir(), "p")
	run("-G", "-W", "-s", secret, "-p", public)
	run("-S", "-s", secret, "-m", sums)
	text, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := pkg.ParsePublicKey(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pkg.VerifySignature(dir, s, []pkg.PublicKey{theirs}); err != nil {
		t.Error(err)
	}
	if text, err = os.ReadFile(secret); err != nil {
		t.Fatal(err)
	}
	if mine, err := pkg.ParsePrivateKey(text, ""); err != nil || mine.Public().String() != theirs.String() {
		t.Errorf("got %v, %v for a private key of minisign", mine.Public(), err)
	}
}

func TestKeys(t *testing.T) {
	k := newKey(t)
	text, err := k.Text("")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pkg.ParsePrivateKey([]byte(text), "")
	if err != nil || got.Public().String() != k.Public().String() {
		t.Errorf("got %v, %v for a key that was written and read", got.Public(), err)
	}
	for _, text := range []string{k.Public().String(), k.PublicText(), " " + k.Public().String() + "\r\n"} {
		if p, err := pkg.ParsePublicKey(text); err != nil || p.String() != k.Public().String() {
			t.Errorf("got %v, %v for the public key %q", p, err, text)
		}
	}
	for _, text := range []string{"", "RW", "RWQ!", k.Public().String()[:50]} {
		if _, err := pkg.ParsePublicKey(text); err == nil {
			t.Errorf("no error for the public key %q", text)
		}
		if _, err := pkg.ParsePrivateKey([]byte(text), ""); err == nil {
			t.Errorf("no error for the private key %q", text)
		}
	}
	if testing.Short() {
		return
	}
	// Encryption needs 1 GiB of memory.
	if text, err = k.Text("secret"); err != nil {
		t.Fatal(err)
	}
	if got, err = pkg.ParsePrivateKey([]byte(text), "secret"); err != nil || got.Public().String() != k.Public().String() {
		t.Errorf("got %v, %v for an encrypted key", got.Public(), err)
	}
	for _, password := range []string{"", "wrong"} {
		if _, err := pkg.ParsePrivateKey([]byte(text), password); !errors.Is(err, pkg.ErrPassword) {
			t.Errorf("got %v for the password %q", err, password)
		}
	}
}

func TestAllowSource(t *testing.T) {
	f := func(pattern, source string, want bool) {
		t.Helper()
		p := &pkg.Policy{Sources: []string{"oci://never/*", pattern}}
		err := p.AllowSource(source, "/etc/weir")
		if got := err == nil; got != want {
			t.Errorf("%s for %s: got %v, want %v", pattern, source, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), source) {
			t.Errorf("%v does not name %s", err, source)
		}
	}
	f("oci://registry.corp/*", "oci://registry.corp/acme/http:1.2.0", true)
	f("oci://registry.corp/*", "oci://registry.corp.evil/acme/http:1.2.0", false)
	f("oci://registry.corp/*", "https://registry.corp/acme", false)
	f("oci://registry.corp/acme/http:1.2.0", "oci://registry.corp/acme/http:1.2.0", true)
	f("oci://registry.corp/acme/http:1.2.0", "oci://registry.corp/acme/http:1.2.00", false)
	f("git+https://*/acme/*.git*", "git+https://a/acme/b.git//x?ref=v1", true)
	f("git+https://*/acme/*.git*", "git+https://a/other/b.git?ref=v1", false)
	f("https://a/b*b", "https://a/b", false)
	f("https://a/b*b", "https://a/bb", true)
	// A server may resolve such paths.
	f("https://host/pkg/*", "https://host/pkg/../evil.tar.gz", false)
	f("https://host/pkg/*", "https://host/pkg/%2e%2E/evil.tar.gz", false)
	f("https://host/pkg/*", "https://host/pkg/..%2fevil.tar.gz", false)
	f("https://host/pkg/*", "https://host/pkg/%zz", false)
	// Local folders: the folder of the config is always allowed.
	f("file:///opt/*", "file:///opt/acme", true)
	f("file:///opt/*", "file:///optional/acme", false)
	f("file:///opt/*", "file:///etc/weir/packages/acme", true)
	f("file:///opt/*", "file:///etc/weir", true)
	f("file:///opt/*", "file:///etc/weirdo", false)

	for _, bad := range []string{"", "registry.corp/*", "oci://", "*://a", "*"} {
		if pkg.CheckSources([]string{bad}) == nil {
			t.Errorf("the pattern %q was accepted", bad)
		}
	}
	if err := (&pkg.Policy{}).AllowSource("https://any/where", ""); err != nil {
		t.Errorf("no policy: %v", err)
	}
}

// FuzzSignature: no text of a signature is accepted for other checksums, and none panics.
func FuzzSignature(f *testing.F) {
	k, err := pkg.NewPrivateKey()
	if err != nil {
		f.Fatal(err)
	}
	m := &pkg.Manifest{Name: "a", Version: "1.0.0"}
	f.Add(k.Sign(m, pkg.Sums{{Path: "x", SHA256: strings.Repeat("0", 64)}}))
	f.Add("untrusted comment: x\nRWQ=\ntrusted comment: y\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		dir := write(t, pkg.ManifestName, manifestText)
		put(t, dir, pkg.SignatureName, text)
		s, err := pkg.Compute(dir)
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, pkg.SumsName, s.Text())
		if _, err := pkg.VerifySignature(dir, s, []pkg.PublicKey{k.Public()}); err == nil {
			t.Errorf("accepted %q", text)
		}
	})
}
