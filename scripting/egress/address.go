package egress

import (
	"fmt"
	"net/netip"
	"slices"
)

// reach specifies how an address may be reached.
type reach uint8

const (
	public reach = iota // through any granted host
	local               // through a host that is granted by name, without a star
	listed              // through the address itself, or a name that identifies it
)

// locals are private networks. Hosts that a star grants must not lead there.
var locals = prefixes("127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7",
	"192.0.0.0/24", "198.18.0.0/15", "fec0::/10", "2001:db8::/32", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")

// unlisted are addresses that no normal name resolves to: link-local addresses,
// including cloud metadata services, which return credentials to every client,
// and addresses that do not belong to a single host.
var unlisted = prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "fd20:ce::/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
	"224.0.0.0/4", "ff00::/8", "0.0.0.0/8", "::/128", "240.0.0.0/4", "2001::/32")

// metadataNames are hosts whose name identifies a cloud metadata service, so
// that a grant of one is intentional.
var metadataNames = []string{"metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.azure.internal", "metadata"}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// reachOf returns how an address may be reached. An IPv4 address embedded in an
// IPv6 address counts as the address that a gateway translates it to.
func reachOf(a netip.Addr) reach {
	a = a.Unmap().WithZone("")
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	r := public
	switch {
	case in(unlisted):
		return listed
	case in(locals):
		r = local
	}
	if inner, ok := embedded(a); ok {
		return max(r, local, reachOf(inner))
	}
	return r
}

// embedded returns the IPv4 address in a NAT64, 6to4 or IPv4-compatible
// address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	at := -1
	switch {
	case nat64.Contains(a), nat64Local.Contains(a), compatible.Contains(a):
		at = 12
	case sixToFour.Contains(a):
		at = 2
	default:
		return a, false
	}
	return netip.AddrFrom4([4]byte(b[at : at+4])), true
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// permit contains the result of the grants for the host of a request.
type permit struct {
	host    string
	named   bool // a pattern contains it without a star
	private bool // private networks are permitted
	listed  bool // it is an address, or a name that identifies the service
	proxy   bool // it is requested through a proxy, whose address is in the config
}

// check reports whether an address may be connected to for the host.
func (p permit) check(a netip.Addr) error {
	switch r := reachOf(a); {
	case r == public, r == local && (p.named || p.private), p.listed:
		return nil
	case r == local:
		return &DeniedError{Err: fmt.Errorf("cannot connect to %s: its address %s is of a private network, which only a pattern that names the host grants, without a star", p.host, a)}
	}
	if p.host == a.String() {
		return &DeniedError{Err: fmt.Errorf("cannot connect to %s: it is link-local, a cloud's metadata, or no single host; only a pattern that names the address grants it", p.host)}
	}
	return &DeniedError{Err: fmt.Errorf("cannot connect to %s: its address %s is link-local, a cloud's metadata, or no single host; only a pattern that names the address grants it", p.host, a)}
}
