package dns_test

import (
	"testing"

	"github.com/weir-run/weir/natives/discovery/discoverytest"
	"github.com/weir-run/weir/natives/discovery/dns"
)

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, dns.Registration(), body, want...)
	}
	f(`names = ["a"]`)
	f("names = [\"a\"]\ntype = \"mx\"\nport = 25")
	f(``, "missing required attribute names")
	f(`names = []`, "names must not be empty")
	f(`names = ["a", ""]`, "a name must not be empty")
	f("names = [\"a\"]\ntype = \"TXT\"", `type must be "SRV", "A", "AAAA", "MX" or "NS", not "TXT"`)
	f("names = [\"a\"]\ntype = \"A\"", `port is needed with type = "A"`)
	f("names = [\"a\"]\ntype = \"A\"\nport = 65536", "port must be from 1 to 65535, not 65536")
	f("names = [\"a\"]\nrefresh_interval = \"0s\"", "refresh_interval is 0s")
}
