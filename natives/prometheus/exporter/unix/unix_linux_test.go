package unix_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/exporter/internal/exporter"
	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
)

// fixtures returns the directory of node_exporter's own test data.
var fixtures = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/node_exporter").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "collector", "fixtures"), err
})

// arguments returns the settings that all tests of this process share, with the
// given collectors, as in node_exporter's end-to-end-test.sh.
func arguments(t *testing.T, collectors ...string) *unix.Arguments {
	t.Helper()
	dir, err := fixtures()
	if err != nil {
		t.Skipf("cannot find node_exporter's fixtures: %v", err)
	}
	a := defaults()
	a.ProcFSPath = filepath.Join(dir, "proc")
	a.RootFSPath = dir
	a.Netstat.Fields = "^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$"
	a.Netclass.IgnoreInvalidSpeedDevice = true
	a.Sysctl.IncludeInfo = []string{"kernel.seccomp.actions_avail"}
	a.Sysctl.Include = []string{"fs.file-nr", "fs.file-nr:total,current,max", "kernel.threads-max"}
	a.Textfile.Directory = filepath.Join(dir, "textfile", "two_metric_files")
	a.SetCollectors = collectors
	return a
}

func build(t *testing.T, a *unix.Arguments) (*componenttest.Node, component.Component, error) {
	t.Helper()
	n := componenttest.New(t, "prometheus.exporter.unix.host")
	n.Services["http"] = service.HTTPData{MemoryAddress: "weir.memory:80"}
	c, err := unix.Registration().Build(n.Options(), a, nil)
	if err == nil {
		n.Run(t, c)
	}
	return n, c, err
}

func mustBuild(t *testing.T, a *unix.Arguments) (*componenttest.Node, component.Component) {
	t.Helper()
	n, c, err := build(t, a)
	if err != nil {
		t.Fatal(err)
	}
	return n, c
}

func get(t *testing.T, c component.Component, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	c.(component.HTTPHandler).Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code, w.Body.String()
}

// samples returns the sample lines of an exposition by metric name.
func samples(text string) map[string][]string {
	out := map[string][]string{}
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		out[name] = append(out[name], line)
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out
}

// TestLikeNodeExporter compares with the output that node_exporter's own
// end-to-end test expects, for the collectors that only need its procfs.
func TestLikeNodeExporter(t *testing.T) {
	collectors := []string{
		"buddyinfo", "conntrack", "entropy", "filefd", "ipvs", "lnstat", "loadavg", "meminfo", "netstat",
		"nfs", "nfsd", "pressure", "processes", "schedstat", "slabinfo", "sockstat", "softirqs", "sysctl", "textfile",
		"vmstat", "xfrm", "zoneinfo",
	}
	_, c := mustBuild(t, arguments(t, collectors...))
	code, body := get(t, c, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("got status %d:\n%s", code, body)
	}
	dir, _ := fixtures()
	golden, err := os.ReadFile(filepath.Join(dir, "e2e-output.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := samples(body), samples(string(golden))
	for name := range got {
		switch name {
		case "node_exporter_build_info", "node_scrape_collector_duration_seconds", "node_textfile_mtime_seconds":
			continue
		case "node_scrape_collector_success":
			want[name] = slices.DeleteFunc(want[name], func(line string) bool {
				return !slices.ContainsFunc(collectors, func(c string) bool { return strings.Contains(line, `"`+c+`"`) })
			})
		}
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s (-node_exporter +weir):\n%s", name, diff)
		}
	}
	if len(got) < 250 {
		t.Errorf("got only %d metrics", len(got))
	}
}

func TestExports(t *testing.T) {
	n, _ := mustBuild(t, arguments(t, "loadavg"))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := exporter.Exports{Targets: []map[string]string{{
		"__address__": "weir.memory:80", "__scheme__": "http",
		"__metrics_path__": "/api/v0/component/prometheus.exporter.unix.host/metrics",
		"job":              "integrations/unix", "instance": host,
		"__meta_component_name": "prometheus.exporter.unix",
		"__meta_component_id":   "prometheus.exporter.unix.host",
	}}}
	if diff := cmp.Diff(any(want), n.Exports()); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}
}

func TestChoiceOfCollectors(t *testing.T) {
	n, c := mustBuild(t, arguments(t, "loadavg", "vmstat", "boottime"))
	f := func(path, want string) {
		t.Helper()
		code, body := get(t, c, path)
		var got []string
		for _, line := range samples(body)["node_scrape_collector_success"] {
			got = append(got, strings.Split(line, `"`)[1])
		}
		if s := strings.Join(got, " "); code != http.StatusOK || s != want {
			t.Errorf("%s: got status %d, collectors %q, want %q", path, code, s, want)
		}
		if len(samples(body)["node_exporter_build_info"]) != 1 {
			t.Errorf("%s: lacks node_exporter_build_info", path)
		}
	}
	f("/metrics", "loadavg vmstat")
	f("/metrics?collect[]=vmstat", "vmstat")
	f("/metrics?exclude[]=vmstat", "loadavg")
	f("/metrics?exclude[]=vmstat&exclude[]=loadavg", "")
	if code, body := get(t, c, "/metrics?collect[]=meminfo"); code != http.StatusBadRequest || !strings.Contains(body, `"meminfo"`) {
		t.Errorf("a disabled collector: got status %d, %q", code, body)
	}
	if code, _ := get(t, c, "/metrics?collect[]=vmstat&exclude[]=vmstat"); code != http.StatusBadRequest {
		t.Errorf("collect and exclude: got status %d, want 400", code)
	}
	if !strings.Contains(n.Logs(), "collectors=boottime") {
		t.Errorf("the log lacks the collector of another system:\n%s", n.Logs())
	}

	// Other collectors need no restart.
	if err := c.(component.Updater).Update(arguments(t, "meminfo")); err != nil {
		t.Fatal(err)
	}
	f("/metrics", "meminfo")
}

func TestExporterMetrics(t *testing.T) {
	a := arguments(t, "loadavg")
	_, c := mustBuild(t, a)
	if _, body := get(t, c, "/metrics"); strings.Contains(body, "promhttp_") {
		t.Error("got promhttp_ metrics by default")
	}
	b := *a
	b.IncludeExporterMetrics = true
	if err := c.(component.Updater).Update(&b); err != nil {
		t.Fatal(err)
	}
	get(t, c, "/metrics")
	if _, body := get(t, c, "/metrics"); !strings.Contains(body, "\npromhttp_metric_handler_requests_total{code=\"200\"} 1\n") {
		t.Errorf("want one request counted before this one, got\n%s", body)
	}
	other := b
	other.SetCollectors = []string{"uname"}
	if err := c.(component.Updater).Update(&other); err != nil {
		t.Fatal(err)
	}
	if _, body := get(t, c, "/metrics"); !strings.Contains(body, "\npromhttp_metric_handler_requests_total{code=\"200\"} 2\n") {
		t.Errorf("the counter does not go on after an update:\n%s", body)
	}
}

func TestNeedsRestart(t *testing.T) {
	a := arguments(t, "loadavg")
	_, c := mustBuild(t, a)
	other := *a
	other.Vmstat.Fields = "^pgpg.*"
	if _, _, err := build(t, &other); err == nil || !strings.Contains(err.Error(), "needs a restart") {
		t.Errorf("another node with other settings: got %v, want needs a restart", err)
	}
	if err := c.(component.Updater).Update(&other); err == nil || !strings.Contains(err.Error(), "needs a restart") {
		t.Errorf("an update to other settings: got %v, want needs a restart", err)
	}
	if code, body := get(t, c, "/metrics"); code != http.StatusOK || !strings.Contains(body, "\nnode_load1 ") {
		t.Errorf("after the refusal: got status %d and\n%s", code, body)
	}
	// The same settings are valid for another node.
	mustBuild(t, arguments(t, "vmstat"))
}

// TestFlags checks that each flag exists in node_exporter with the same default.
func TestFlags(t *testing.T) {
	known := map[string]*kingpin.FlagModel{}
	for _, f := range kingpin.CommandLine.Model().Flags {
		known[f.Name] = f
	}
	// Arguments whose default in Alloy differs.
	differs := []string{
		"collector.arp.netlink", "collector.cpu.guest", "collector.diskstats.device-exclude",
		"collector.filesystem.fs-types-exclude", "collector.filesystem.mount-points-exclude", "collector.netstat.fields",
	}
	for _, flag := range unix.Flags(defaults()) {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if off, ok := strings.CutPrefix(name, "no-"); ok {
			name, value = off, "false"
		} else if !strings.Contains(flag, "=") {
			value = "true"
		}
		f := known[name]
		if f == nil {
			t.Errorf("node_exporter has no flag %s", name)
			continue
		}
		def := strings.Join(f.Default, "")
		if def == "" && f.IsBoolFlag() {
			def = "false"
		}
		if (def == value) == slices.Contains(differs, name) {
			t.Errorf("%s: got default %q, node_exporter has %q", name, value, def)
		}
	}
	// Lists, and arguments that are not passed by default.
	a := defaults()
	a.Disk.DeviceInclude, a.Supervisord.URL, a.IPVS.BackendLabels = "x", "x", []string{"proto"}
	a.Perf.Tracepoint, a.Perf.HardwareProfilers, a.Perf.SoftwareProfilers, a.Perf.CacheProfilers = []string{"x"}, []string{"x"}, []string{"x"}, []string{"x"}
	a.Sysctl.Include, a.Sysctl.IncludeInfo = []string{"x"}, []string{"x"}
	for _, flag := range unix.Flags(a) {
		name, _, ok := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if ok && known[name] == nil {
			t.Errorf("node_exporter has no flag %s", name)
		}
	}
}
