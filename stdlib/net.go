package stdlib

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// networks is a table of networks. The longest network that contains an address
// is used.
type networks struct {
	lengths []int // the existing prefix lengths, longest first; IPv6 lengths are increased by 128
	entries map[netip.Prefix]int
	names   []string // as given
}

// netModule has functions for addresses and networks. It does not access the
// network.
func netModule() *scripting.Module {
	ip := text("ip", "The address.")
	typ := &scripting.ObjectType{
		Name: "net.Networks", Doc: "A set of networks, built once for fast look-ups.", New: "networks",
		String: func(data any) string { return strings.Join(data.(*networks).names, ", ") },
	}
	typ.Methods = []scripting.Function{
		{
			Name: "contains", Doc: "Reports whether one of the networks contains the address.", Params: []scripting.Param{ip},
			Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether one of the networks contains the address.", Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				i, err := a[0].(*networks).find(a[1].(string))
				return i >= 0, err
			},
			Examples: examples(list("10.0.0.0/8", "fd00::/8"), ex(true, "10.1.2.3"), ex(false, "11.1.2.3"), ex(true, "fd00::1"),
				scripting.FunctionExample{Args: []scripting.Value{"ten"}, Err: `cannot use "ten" as an address`}),
		},
		{
			Name: "find", Doc: "Finds the smallest network that contains the address.", Params: []scripting.Param{ip},
			Result: scripting.Result{Kind: scripting.KindString, Doc: "The network in the form in which it was given, or nothing if no network contains the address.", Optional: true, Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*networks)
				i, err := n.find(a[1].(string))
				if err != nil || i < 0 {
					return nil, err
				}
				return n.names[i], nil
			},
			Examples: examples(list("10.0.0.0/8", "10.1.0.0/16"), ex("10.1.0.0/16", "10.1.2.3"), ex("10.0.0.0/8", "::ffff:10.2.0.1"), ex(nil, "192.0.2.1")),
		},
	}
	return &scripting.Module{
		Name:  "net",
		Doc:   "IP addresses and networks, as strings. An IPv4 address in IPv6 form (::ffff:10.0.0.1) is treated as the IPv4 address. A zone (%eth0) is ignored.",
		Types: []*scripting.ObjectType{typ},
		Funcs: []scripting.Function{
			{
				Name: "networks", Doc: "Builds a set of networks. Build it outside the hooks.",
				Params: []scripting.Param{{Name: "cidrs", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Doc: "The networks, such as 10.0.0.0/8; a single address is a network of one address. At most 100,000."}},
				Result: scripting.Result{Kind: scripting.KindObject, Type: typ, Doc: "The set of networks.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return newNetworks(typ, a[0].(*scripting.List)) },
				Examples: []scripting.FunctionExample{
					ex("10.0.0.0/8, ::1", list("10.0.0.0/8", "::1")),
					{Args: []scripting.Value{list("10.0.0.0/33")}, Err: `cannot use "10.0.0.0/33" as a network`},
				},
			},
			{
				Name: "contains", Doc: "Reports whether a network contains an address. For many networks or addresses, build a set with networks.",
				Params: []scripting.Param{text("cidr", "The network, such as 10.0.0.0/8."), ip},
				Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether the network contains the address.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					p, err := parseNetwork(a[0].(string))
					if err != nil {
						return nil, err
					}
					addr, err := parseAddress(a[1].(string))
					return err == nil && p.Contains(addr), err
				},
				Examples: []scripting.FunctionExample{ex(true, "192.168.0.0/16", "192.168.3.4"), ex(false, "192.168.0.0/16", "fd00::1")},
			},
			{
				Name: "parse_ip", Doc: "Validates an address and returns its canonical form: short, in lower case, IPv4 in dotted form.",
				Params: []scripting.Param{ip},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The address.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					addr, err := parseAddress(a[0].(string))
					if err != nil {
						return nil, err
					}
					return addr.String(), nil
				},
				Examples: []scripting.FunctionExample{
					ex("2001:db8::1", "2001:0DB8:0:0:0:0:0:1"), ex("10.0.0.1", "::ffff:10.0.0.1"),
					{Args: []scripting.Value{"10.0.0.256"}, Err: "IPv4 field has value >255"},
				},
			},
			{
				Name: "version", Doc: "Returns the IP version of an address.", Params: []scripting.Param{ip},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "4 or 6, or nothing if the string is not an address.", Optional: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					switch addr, err := parseAddress(a[0].(string)); {
					case err != nil:
						return nil, nil
					case addr.Is4():
						return int64(4), nil
					}
					return int64(6), nil
				},
				Examples: []scripting.FunctionExample{ex(int64(4), "10.0.0.1"), ex(int64(6), "::1"), ex(nil, "localhost")},
			},
			{
				Name: "kind", Doc: "Returns the type of an address.", Params: []scripting.Param{ip},
				Result: scripting.Result{Kind: scripting.KindString, Doc: `"unspecified", "loopback", "private", "link_local", "multicast" or "global".`, Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					addr, err := parseAddress(a[0].(string))
					if err != nil {
						return nil, err
					}
					return kindOf(addr), nil
				},
				Examples: []scripting.FunctionExample{ex("private", "10.0.0.1"), ex("loopback", "::1"), ex("link_local", "169.254.169.254"), ex("global", "8.8.8.8")},
			},
			{
				Name: "mask", Doc: "Truncates an address to its network, for example to anonymize addresses of users.",
				Params: []scripting.Param{ip,
					{Name: "bits4", Kind: scripting.KindInt, Doc: "The number of bits of an IPv4 address to keep, 0 to 32."},
					{Name: "bits6", Kind: scripting.KindInt, Optional: true, Doc: "The number of bits of an IPv6 address to keep, 0 to 128; by default bits4 plus 24."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The network, such as 192.0.2.0/24.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return mask(a[0].(string), a[1].(int64), a[2]) },
				Examples: []scripting.FunctionExample{
					ex("192.0.2.0/24", "192.0.2.77", int64(24)), ex("2001:db8:1::/48", "2001:db8:1:2::3", int64(24)), ex("2001:db8::/32", "2001:db8:1:2::3", int64(24), int64(32)),
					{Args: []scripting.Value{"192.0.2.77", int64(33)}, Err: "cannot keep 33 bits of 192.0.2.77"},
				},
			},
			{
				Name: "split_host_port", Doc: "Splits host:port. An IPv6 address must be in brackets.", Params: []scripting.Param{text("s", "The text.")},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "The parts.", Fails: true, Fields: []scripting.Param{
					{Name: "host", Kind: scripting.KindString, Doc: "The name or address, without brackets."},
					{Name: "port", Kind: scripting.KindInt, Optional: true, Doc: "The port, if there is one."},
				}},
				Fn: func(a []scripting.Value) (scripting.Value, error) { return splitHostPort(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(mapOf("host", "node-1", "port", int64(9100)), "node-1:9100"), ex(mapOf("host", "::1", "port", int64(80)), "[::1]:80"), ex(mapOf("host", "node-1"), "node-1"), ex(mapOf("host", "::1"), "::1"),
					{Args: []scripting.Value{"a:http"}, Err: "port http"},
				},
			},
			{
				Name: "join_host_port", Doc: "Joins a host and a port. An IPv6 address is put in brackets.",
				Params: []scripting.Param{text("host", "The name or address."), {Name: "port", Kind: scripting.KindInt, Doc: "The port, 0 to 65535."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "host:port.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					port := a[1].(int64)
					if port < 0 || port > 65535 {
						return nil, fmt.Errorf("cannot use port %d: it must be between 0 and 65535", port)
					}
					return net.JoinHostPort(strings.Trim(a[0].(string), "[]"), strconv.FormatInt(port, 10)), nil
				},
				Examples: []scripting.FunctionExample{ex("node-1:9100", "node-1", int64(9100)), ex("[::1]:80", "::1", int64(80))},
			},
		},
	}
}

// parseAddress parses an address. IPv4 addresses are always represented by 4
// bytes. The zone is removed, because it is only valid on one machine.
func parseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("cannot use %q as an address: %s", truncate(s, 60, "…"), reason(err))
	}
	return a.Unmap().WithZone(""), nil
}

// reason returns the message of an error of package netip, without the quoted
// text.
func reason(err error) string {
	msg := err.Error()
	if _, why, ok := strings.Cut(msg, `"): `); ok {
		return why
	}
	return "it is not a valid one"
}

func parseNetwork(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := parseAddress(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("cannot use %q as a network: %s", truncate(s, 60, "…"), reason(err))
	}
	if a := p.Addr(); a.Is4In6() {
		if p.Bits() < 96 {
			return p, fmt.Errorf("cannot use %q as a network: the prefix is too short for an IPv4 address in IPv6 form", truncate(s, 60, "…"))
		}
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

func newNetworks(typ *scripting.ObjectType, cidrs *scripting.List) (scripting.Value, error) {
	if len(cidrs.Items) > maxParts {
		return nil, fmt.Errorf("cannot build a set of more than %d networks", maxParts)
	}
	n := &networks{entries: make(map[netip.Prefix]int, len(cidrs.Items))}
	for i, c := range cidrs.Items {
		p, err := parseNetwork(c.(string))
		if err != nil {
			return nil, err
		}
		n.names = append(n.names, c.(string))
		if _, there := n.entries[p]; there {
			continue
		}
		n.entries[p] = i
		if k := lengthOf(p.Addr(), p.Bits()); !slices.Contains(n.lengths, k) {
			n.lengths = append(n.lengths, k)
		}
	}
	slices.SortFunc(n.lengths, func(a, b int) int { return b - a })
	return &scripting.Object{Type: typ, Data: n}, nil
}

// lengthOf distinguishes the lengths of IPv4 and IPv6 prefixes.
func lengthOf(a netip.Addr, bits int) int {
	if a.Is4() {
		return bits
	}
	return bits + 128
}

// find returns the index of the smallest network that contains an address, or -1.
func (n *networks) find(ip string) (int, error) {
	a, err := parseAddress(ip)
	if err != nil {
		return -1, err
	}
	for _, k := range n.lengths {
		bits := k - lengthOf(a, 0)
		if bits < 0 || bits > a.BitLen() {
			continue // of the other IP version
		}
		p, err := a.Prefix(bits)
		if err != nil {
			return -1, err
		}
		if i, ok := n.entries[p]; ok {
			return i, nil
		}
	}
	return -1, nil
}

func kindOf(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsPrivate():
		return "private"
	case a.IsLinkLocalUnicast():
		return "link_local"
	case a.IsMulticast():
		return "multicast"
	}
	return "global"
}

func mask(ip string, bits int64, bits6 scripting.Value) (scripting.Value, error) {
	a, err := parseAddress(ip)
	if err != nil {
		return nil, err
	}
	if a.Is6() {
		bits += 24
		if n, ok := bits6.(int64); ok {
			bits = n
		}
	}
	if bits < 0 || bits > int64(a.BitLen()) {
		return nil, fmt.Errorf("cannot keep %d bits of %s: it has only %d", bits, a, a.BitLen())
	}
	p, err := a.Prefix(int(bits))
	if err != nil {
		return nil, err
	}
	return p.String(), nil
}

func splitHostPort(s string) (scripting.Value, error) {
	m := scripting.NewMap()
	if bare := strings.Trim(s, "[]"); !strings.Contains(s, ":") || strings.Count(bare, ":") > 1 && (bare == s || len(bare) == len(s)-2) {
		m.Set("host", bare)
		return m, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if e, ok := errors.AsType[*net.AddrError](err); ok {
			err = errors.New(e.Err)
		}
		return nil, fmt.Errorf("cannot split %q: %w", truncate(s, 60, "…"), err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("cannot split %q: port %s is not between 0 and 65535", truncate(s, 60, "…"), truncate(port, 20, "…"))
	}
	m.Set("host", host)
	m.Set("port", int64(n))
	return m, nil
}
