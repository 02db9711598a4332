package selector

import (
	"fmt"
	"net/netip"
	"strings"
)

// newAddresses returns a function that reports whether a line contains an IP
// address that matches spec: an address, a network (10.0.0.0/8) or a range
// (10.0.0.1-10.0.0.9).
func newAddresses(spec string) (func(line string) bool, error) {
	has, err := addresses(spec)
	if err != nil {
		return nil, err
	}
	return func(line string) bool { return findAddress(line, has) }, nil
}

func addresses(spec string) (has func(netip.Addr) bool, err error) {
	if one, err := netip.ParseAddr(spec); err == nil {
		return func(a netip.Addr) bool { return a == one }, nil
	}
	if network, err := netip.ParsePrefix(spec); err == nil {
		return network.Contains, nil
	}
	first, last, ok := strings.Cut(spec, "-")
	from, err1 := netip.ParseAddr(first)
	to, err2 := netip.ParseAddr(last)
	if !ok || err1 != nil || err2 != nil || from.BitLen() != to.BitLen() || from.Zone() != "" || to.Zone() != "" || to.Less(from) {
		return nil, fmt.Errorf("%q is no IP address, no network such as 10.0.0.0/8 and no range such as 10.0.0.1-10.0.0.9", spec)
	}
	return func(a netip.Addr) bool { return !a.Less(from) && !to.Less(a) }, nil
}

const (
	ofIPv4 = "0123456789."
	ofIPv6 = "0123456789abcdefABCDEF:."
)

// findAddress reports whether meant is true for one of the addresses in a line. A
// possible beginning of an address is read as far as it can be part of one.
func findAddress(line string, meant func(netip.Addr) bool) bool {
	for i := 0; i < len(line); i++ {
		var of string
		switch rest := line[i:]; {
		case beginsIPv4(rest):
			of = ofIPv4
		case beginsIPv6(rest):
			of = ofIPv6
		default:
			continue
		}
		n := strings.IndexFunc(line[i:], func(r rune) bool { return !strings.ContainsRune(of, r) })
		if n < 0 {
			n = len(line) - i
		}
		if a, err := netip.ParseAddr(line[i : i+n]); err == nil && meant(a) {
			return true
		}
		i += n
	}
	return false
}

// beginsIPv4 reports whether s begins with digits that are followed by a dot.
func beginsIPv4(s string) bool {
	return len(s) >= 4 && isDigit(s[0]) && (s[1] == '.' || s[2] == '.' || s[3] == '.')
}

// beginsIPv6 reports whether s begins with :: and a digit, or with one to four
// digits and a colon.
func beginsIPv6(s string) bool {
	if len(s) < 5 {
		return false
	}
	if s[0] == ':' {
		return s[1] == ':' && isHex(s[2])
	}
	for i := range 5 {
		if i > 0 && s[i] == ':' {
			return true
		}
		if !isHex(s[i]) {
			return false
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
