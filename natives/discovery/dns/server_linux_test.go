package dns_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	upstream "github.com/prometheus/prometheus/discovery/dns"
	"golang.org/x/sys/unix"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
	weirdns "github.com/weir-run/weir/natives/discovery/dns"
)

// inside is set in the process that has its own network and /etc/resolv.conf:
// Prometheus only queries the servers in that file, on port 53.
const inside = "WEIR_TEST_DNS_INSIDE"

// TestServer runs the tests with a real DNS server, in separate namespaces.
func TestServer(t *testing.T) {
	if os.Getenv(inside) != "" {
		t.Skip("the namespaces are made")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInside", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("cannot make namespaces here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestInside") {
		t.Errorf("nothing ran:\n%s", out)
	}
}

var records = map[string][]string{
	"_metrics._tcp.example.org. SRV": {
		"_metrics._tcp.example.org. 60 IN SRV 0 5 9100 b.example.org.",
		"_metrics._tcp.example.org. 60 IN SRV 0 5 9200 a.example.org.",
	},
	"_more._tcp.example.org. SRV": {"_more._tcp.example.org. 60 IN SRV 0 5 9300 c.example.org."},
	"a.example.org. A": {
		"a.example.org. 60 IN CNAME real.example.org.",
		"real.example.org. 60 IN A 10.0.0.2",
		"real.example.org. 60 IN A 10.0.0.1",
	},
	"a.example.org. AAAA": {"a.example.org. 60 IN AAAA fd00::1"},
	"example.org. MX":     {"example.org. 60 IN MX 10 mail.example.org."},
	"example.org. NS":     {"example.org. 60 IN NS ns1.example.org.", "example.org. 60 IN NS ns2.example.org."},
}

// startServer enables the loopback device and starts a server on it that
// /etc/resolv.conf names.
func startServer(t *testing.T) *discoverytest.DNS {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("needs namespaces, see TestServer")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("search svc.example.org example.org\nnameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(conf, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount("/etc/resolv.conf", unix.MNT_DETACH) })

	s, err := discoverytest.NewDNS(t, "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	for question, answer := range records {
		s.Set(question, answer...)
	}
	return s
}

func TestInsideSameAsPrometheus(t *testing.T) {
	s := startServer(t)
	f := func(names, more, text string, targets int) {
		t.Helper()
		discoverytest.Same(t, weirdns.Registration(), "names = "+names+"\n"+more, new(upstream.SDConfig), "names: "+names+"\n"+text, targets).Stop()
	}
	f(`["_metrics._tcp.example.org", "_more._tcp.example.org."]`, "", "", 3)
	f(`["_metrics._tcp"]`, "", "", 2) // with the search path
	f(`["a.example.org"]`, "type = \"A\"\nport = 9100", "type: A\nport: 9100", 2)
	f(`["a.example.org"]`, "type = \"AAAA\"\nport = 9100", "type: AAAA\nport: 9100", 1)
	f(`["example.org"]`, "type = \"mx\"\nport = 25", "type: mx\nport: 25", 1)
	f(`["example.org"]`, "type = \"NS\"\nport = 53", "type: NS\nport: 53", 2)
	s.SetTruncate(true) // uses TCP
	f(`["_metrics._tcp.example.org"]`, "", "", 2)
}

func TestInsideFailures(t *testing.T) {
	s := startServer(t)
	n := discoverytest.Run(t, weirdns.Registration(), `names = ["_metrics._tcp.example.org", "_more._tcp.example.org"]`+"\nrefresh_interval = \"10ms\"")
	three := func(ts []map[string]string) bool { return len(ts) == 3 }
	n.Await(t, "three targets", three)
	n.AwaitHealth(t, component.Healthy, "found 3 targets")

	// The server fails for one name, then for both: all targets stay.
	s.SetDown(true, "_more._tcp.example.org.")
	n.AwaitHealth(t, component.Unhealthy, `could not resolve "_more._tcp.example.org"`)
	s.SetDown(true, "")
	n.AwaitHealth(t, component.Unhealthy, `could not resolve "_metrics._tcp.example.org"`)
	if !three(n.Targets()) {
		t.Errorf("%d targets are left, want 3", len(n.Targets()))
	}
	s.SetDown(false, "")
	n.AwaitHealth(t, component.Healthy, "found 3 targets")

	// A name that does not exist has no targets, and is not an error.
	n.Update(t, fmt.Sprintf("names = %q\nrefresh_interval = \"10ms\"", []string{"_gone._tcp.example.org"}))
	n.Await(t, "no targets", func(ts []map[string]string) bool { return len(ts) == 0 })
	n.AwaitHealth(t, component.Healthy, "found 0 targets")
}
