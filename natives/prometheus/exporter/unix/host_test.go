package unix

import (
	"runtime"
	"strings"
	"testing"
)

// TestHost: an unsupported system is an error in the config, in a check and at a
// start.
func TestHost(t *testing.T) {
	for _, goos := range []string{"darwin", "windows", "freebsd", "linux"} {
		err := checkHost(goos)
		if goos == "linux" != (err == nil) || err != nil && !strings.Contains(err.Error(), "this host runs "+goos+": check and run this config on the Linux host") {
			t.Errorf("%s: got %v, want an error with what to do, except on Linux", goos, err)
		}
	}
	r := Registration()
	es := r.Check(r.NewArgs(), nil)
	if linux := runtime.GOOS == "linux"; linux != (len(es) == 0) || !linux && es[0].Warning {
		t.Errorf("a check on %s says %v", runtime.GOOS, es)
	}
}

// TestUnknownCollectors: a check reports unknown collectors at the list that
// contains them; at run time, they are only logged.
func TestUnknownCollectors(t *testing.T) {
	a := &Arguments{EnableCollectors: []string{"cpu", "cpuu"}, DisableCollectors: []string{"arp"}, SetCollectors: []string{"ntq"}}
	es := a.checkCollectors([]string{"arp", "cpu", "ntp"})
	if len(es) != 2 {
		t.Fatalf("got %v, want two warnings", es)
	}
	for i, want := range []struct{ path, msg string }{
		{"enable_collectors", `there is no collector "cpuu", so it is ignored`},
		{"set_collectors", `there is no collector "ntq", so it is ignored`},
	} {
		if es[i].Path != want.path || es[i].Error() != want.msg || es[i].Detail != "the collectors are arp, cpu, ntp" || !es[i].Warning {
			t.Errorf("got %s: %v (warning %v), want %s: %s, a warning", es[i].Path, es[i], es[i].Warning, want.path, want.msg)
		}
	}
}
