package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// overSSH runs git-upload-pack on the server.
type overSSH struct {
	client   *ssh.Client
	session  *ssh.Session
	in       io.WriteCloser
	out      io.Reader
	reported *head
	end      func() bool // does not close the connection when the context ends
}

// maxKey is the maximum size of the files with a key and with the keys of hosts.
const maxKey = 4 << 20

func dialSSH(ctx context.Context, address string, a remote.Access) (session, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "22")
	}
	config, err := sshConfig(u, host, a)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	s := &overSSH{reported: &head{}}
	s.end = context.AfterFunc(ctx, func() { conn.Close() })
	if err := s.start(conn, host, u.Path, config); err != nil {
		conn.Close()
		s.end()
		return nil, err
	}
	return s, nil
}

func sshConfig(u *url.URL, host string, a remote.Access) (*ssh.ClientConfig, error) {
	if a.SSH == nil || a.SSH.Key == "" && a.SSH.KeyFile == "" {
		return nil, errors.New("a repository over SSH needs the block ssh_key, with key or key_file")
	}
	pem := []byte(a.SSH.Key)
	if len(pem) == 0 {
		var err error
		if pem, err = files.Read(a.SSH.KeyFile, maxKey); err != nil {
			return nil, fmt.Errorf("cannot read the SSH key: %w", err)
		}
	}
	parse := func() (ssh.Signer, error) { return ssh.ParsePrivateKey(pem) }
	if a.SSH.Passphrase != "" {
		parse = func() (ssh.Signer, error) { return ssh.ParsePrivateKeyWithPassphrase(pem, []byte(a.SSH.Passphrase)) }
	}
	key, err := parse()
	if err != nil {
		return nil, fmt.Errorf("cannot use the SSH key: %w", err)
	}
	known, err := knownHosts(a.SSH.KnownHosts)
	if err != nil {
		return nil, err
	}
	db, err := knownhosts.NewDB(known...)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys of known hosts: %w", err)
	}
	check := db.HostKeyCallback()
	return &ssh.ClientConfig{
		User: cmp.Or(a.SSH.Username, u.User.Username(), "git"),
		Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: func(name string, at net.Addr, key ssh.PublicKey) error {
			err := check(name, at, key)
			switch {
			case knownhosts.IsHostUnknown(err):
				return fmt.Errorf("the key of the host %s is not known: it has the fingerprint %s; add it to %s with ssh-keyscan, after you have verified it", name, ssh.FingerprintSHA256(key), strings.Join(known, " or "))
			case err != nil:
				return fmt.Errorf("the host %s has another key than expected, with the fingerprint %s: %w", name, ssh.FingerprintSHA256(key), err)
			}
			return nil
		},
		HostKeyAlgorithms: db.HostKeyAlgorithms(host),
	}, nil
}

// knownHosts returns the files with the keys of hosts.
func knownHosts(file string) ([]string, error) {
	if file != "" {
		return []string{file}, nil
	}
	all := []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, filepath.Join(home, ".ssh", "known_hosts"))
	}
	var there []string
	for _, f := range all {
		if _, err := files.Stat(f); err == nil {
			there = append(there, f)
		}
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("the keys of hosts are in none of the files %s: create one with ssh-keyscan, or set known_hosts: %w", strings.Join(all, ", "), fs.ErrNotExist)
	}
	return there, nil
}

// start authenticates and starts the command.
func (s *overSSH) start(conn net.Conn, host, path string, config *ssh.ClientConfig) error {
	c, channels, requests, err := ssh.NewClientConn(conn, host, config)
	if err != nil {
		return fmt.Errorf("cannot log in: %w", err)
	}
	s.client = ssh.NewClient(c, channels, requests)
	if s.session, err = s.client.NewSession(); err != nil {
		return err
	}
	if s.in, err = s.session.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.session.StdoutPipe(); err != nil {
		return err
	}
	s.session.Stderr = s.reported
	quoted := "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
	return s.session.Start("git-upload-pack " + quoted)
}

func (s *overSSH) refs(context.Context) (io.Reader, error) {
	return &errorReader{Reader: s.out, reported: s.reported}, nil
}

func (s *overSSH) upload(_ context.Context, request []byte) (io.ReadCloser, error) {
	if _, err := s.in.Write(request); err != nil {
		return nil, err
	}
	return io.NopCloser(&errorReader{Reader: s.out, reported: s.reported}), nil
}

// Close ends the command and closes the connection.
func (s *overSSH) Close() error {
	s.in.Close()
	err := s.client.Close()
	_ = s.session.Wait() // the pipes have been read
	s.end()
	return err
}

// head keeps the first bytes of what the command reports. It is safe for concurrent
// use.
type head struct {
	mu sync.Mutex
	b  []byte
}

// maxHead is the maximum number of bytes that a head keeps.
const maxHead = 500

// Write never fails.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = append(h.b, b[:min(len(b), maxHead-len(h.b))]...)
	return len(b), nil
}

// errorReader reads from the command. If there is nothing to read, the error contains
// what the command reported.
type errorReader struct {
	io.Reader
	reported *head
	read     bool
}

// Read reads from the command.
func (r *errorReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.read = r.read || n > 0; r.read || err != io.EOF {
		return n, err
	}
	r.reported.mu.Lock()
	defer r.reported.mu.Unlock()
	if text := strings.TrimSpace(string(r.reported.b)); text != "" {
		return 0, fmt.Errorf("the server reports %q", text)
	}
	return 0, err
}
