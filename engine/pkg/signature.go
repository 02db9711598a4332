package pkg

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"aead.dev/minisign"

	"github.com/weir-run/weir/engine/files"
)

// SignatureName is the file with the signature of a package, in the folder of the
// package. It is a signature of SumsName in minisign's format, so that minisign can
// verify it as well:
//
//	minisign -V -p weir.pub -m weir-package.sum
//
// Format: https://jedisct1.github.io/minisign/#signature-format
const SignatureName = SumsName + ".minisig"

// PublicKey is a public key of minisign. The zero value is not a key.
type PublicKey struct{ key minisign.PublicKey }

// ParsePublicKey parses a public key: the second line of a .pub file of minisign, or the
// whole file.
func ParsePublicKey(text string) (PublicKey, error) {
	var k PublicKey
	if err := k.key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return k, errors.New("not a public key of minisign: use the line of the .pub file that begins with RW")
	}
	return k, nil
}

// ID returns the ID of the key as minisign prints it: 16 hexadecimal digits. IDs are not
// secure; two keys can have the same one.
func (k PublicKey) ID() string { return keyID(k.key.ID()) }

// String returns the key in the form that ParsePublicKey parses.
func (k PublicKey) String() string { return k.key.String() }

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// PrivateKey is a private key of minisign.
type PrivateKey struct{ key minisign.PrivateKey }

// NewPrivateKey creates a key.
func NewPrivateKey() (PrivateKey, error) {
	_, k, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("cannot create a key: %w", err)
	}
	return PrivateKey{k}, nil
}

// ErrPassword says that a private key needs a password or that the password is wrong.
var ErrPassword = errors.New("the private key is encrypted")

// ParsePrivateKey parses the file of a private key, which was encrypted with a password
// if that is not empty. If the password is missing or wrong, the error wraps ErrPassword.
// Decryption needs as much memory and time as the file says, up to 1 GiB.
func ParsePrivateKey(text []byte, password string) (PrivateKey, error) {
	var k PrivateKey
	var err error
	switch encrypted := minisign.IsEncrypted(text); {
	case encrypted && password == "":
		return k, ErrPassword
	case encrypted:
		if k.key, err = minisign.DecryptKey(password, text); err != nil {
			return k, fmt.Errorf("%w, and the password does not decrypt it", ErrPassword)
		}
	default:
		if err := k.key.UnmarshalText(text); err != nil {
			return k, errors.New("not a private key of minisign")
		}
	}
	return k, nil
}

// Text returns the file of the key, which is encrypted with a password if that is not
// empty. Encryption needs 1 GiB of memory.
func (k PrivateKey) Text(password string) (string, error) {
	var text []byte
	var err error
	if password == "" {
		text, err = k.key.MarshalText()
	} else {
		text, err = minisign.EncryptKey(password, k.key)
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the private key: %w", err)
	}
	return string(text) + "\n", nil
}

// Public returns the public key.
func (k PrivateKey) Public() PublicKey {
	return PublicKey{k.key.Public().(minisign.PublicKey)}
}

// PublicText returns the .pub file of the key.
func (k PrivateKey) PublicText() string {
	return fmt.Sprintf("untrusted comment: minisign public key %s\n%s\n", k.Public().ID(), k.Public())
}

// Sign returns the signature of the checksums of a package, the content of
// SignatureName. The signature contains the name, the version and the digest as a
// comment, which is signed as well.
func (k PrivateKey) Sign(m *Manifest, s Sums) string {
	comment := fmt.Sprintf("%s %s %s", m.Name, m.Version, s.Digest())
	// Signatures of hashes are what minisign itself writes since version 0.10.
	r := minisign.NewReader(strings.NewReader(s.Text()))
	if _, err := io.Copy(io.Discard, r); err != nil {
		panic("BUG: cannot read a string: " + err.Error())
	}
	return string(r.SignWithComments(k.key, comment, "weir package, signed with key "+k.Public().ID()))
}

// Signature is the signature of a package. It says nothing until Verify has verified
// it.
type Signature struct {
	// KeyID is the ID of the key that it claims to be made with.
	KeyID string
	// Comment is the signed comment: name, version and digest of the package if weir
	// signed it. It may contain control characters.
	Comment string

	text []byte
}

// ReadSignature reads the signature of the package in dir. If there is none, the error
// wraps fs.ErrNotExist.
func ReadSignature(dir string) (*Signature, error) {
	file := filepath.Join(dir, SignatureName)
	text, err := files.Read(file, maxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not signed: it has no %s: %w", dir, SignatureName, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the signature of a package: %w", err)
	}
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		return nil, fmt.Errorf("%s is not a signature of minisign", file)
	}
	return &Signature{KeyID: keyID(s.KeyID), Comment: s.TrustedComment, text: text}, nil
}

const maxSignature = 64 << 10 // bytes

// signed reports whether the signature is one of s with the key.
func (g *Signature) signed(s Sums, k PublicKey) bool {
	return minisign.Verify(k.key, []byte(s.Text()), g.text)
}

// VerifySignature verifies that the package in dir was signed with one of the keys and
// has not changed since, and returns the signature. s are the checksums of its files,
// from Compute. The error names the key, the file, and the expected and the actual
// digest.
func VerifySignature(dir string, s Sums, keys []PublicKey) (*Signature, error) {
	g, err := ReadSignature(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; required is a signature with %s", err, keyNames(keys))
	}
	var trusted []PublicKey
	for _, k := range keys {
		if k.ID() == g.KeyID {
			trusted = append(trusted, k)
		}
	}
	if len(trusted) == 0 {
		return nil, fmt.Errorf("%s is signed with key %s, which is not trusted; required is a signature with %s", dir, g.KeyID, keyNames(keys))
	}
	for _, k := range trusted {
		if g.signed(s, k) {
			return g, nil
		}
	}
	want, err := ReadSums(dir)
	if err != nil {
		return nil, err
	}
	for _, k := range trusted {
		if g.signed(want, k) {
			return nil, fmt.Errorf("%s has changed since it was signed with key %s: expected %s, got %s%s", dir, g.KeyID, want.Digest(), s.Digest(), List(s.Changes(want)))
		}
	}
	expected := "another content"
	if d := g.Comment[strings.LastIndex(g.Comment, " ")+1:]; digest.MatchString(d) {
		expected = d
	}
	return nil, fmt.Errorf("%s: the signature in %s with key %s is not one of %s: expected %s, got %s; get the package again, or sign it with 'weir pkg sign'", dir, SignatureName, g.KeyID, SumsName, expected, want.Digest())
}

// List returns changes as indented lines, each after a line break.
func List(changes []Change) string {
	var b strings.Builder
	for _, c := range changes {
		b.WriteString("\n  " + c.String())
	}
	return b.String()
}

// keyNames lists keys by their IDs.
func keyNames(keys []PublicKey) string {
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.ID())
	}
	if len(ids) == 1 {
		return "key " + ids[0]
	}
	return "one of the keys " + strings.Join(ids, ", ")
}
