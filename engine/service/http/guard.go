package http

import (
	"fmt"
	"net"
	nethttp "net/http"
	"net/netip"
	"slices"
	"strings"
)

// access says what a connection over TCP must be to reach a path.
type access uint8

const (
	open  access = iota // anybody
	sent                // anybody but foreign pages
	shown               // with a Host that a foreign page cannot have
	local               // and from this machine, and not from another origin
)

var crossOrigin = nethttp.NewCrossOriginProtection()

// check returns why a request over TCP is refused, nil if it is not.
func (s *Service) check(r *nethttp.Request, a access) error {
	if a == open || a == sent && !fromPage(r) {
		return nil
	}
	if !s.knownHost(r.Host) && !s.proven(r) {
		return fmt.Errorf("host %q is not one of weir's: ask for its IP address or localhost", r.Host)
	}
	switch a {
	case shown:
		return nil
	case sent:
		return sameOrigin(r)
	}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err != nil || !from.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("only from the machine that weir runs on")
	}
	return sameOrigin(r)
}

// fromPage reports whether a browser says that a page makes the request. They
// say so of all that changes something; other programs do not.
func fromPage(r *nethttp.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

func sameOrigin(r *nethttp.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		return fmt.Errorf("not from another origin")
	}
	if err := crossOrigin.Check(r); err != nil {
		return fmt.Errorf("not from another origin")
	}
	return nil
}

// knownHost reports whether a Host header cannot come from a page whose name
// an attacker made point to this address: an address literal is not a name,
// and localhost and the listen address are not theirs.
func (s *Service) knownHost(host string) bool {
	host = hostname(host)
	if host == "" {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		host == hostname(s.o.Listen) || slices.Contains(s.o.Hosts, host)
}

// proven reports whether a Host header is no foreign page's for another reason:
// the browser has seen a certificate of that name, or has a password that it
// gives to no other page.
func (s *Service) proven(r *nethttp.Request) bool {
	p := s.posture.Load()
	if p.auth.knows(r) {
		return true
	}
	if r.TLS == nil || !p.serves() || len(p.tls.Certificates) == 0 {
		return false
	}
	leaf := p.tls.Certificates[0].Leaf
	return leaf != nil && leaf.VerifyHostname(hostname(r.Host)) == nil
}

// hostname returns a host in lower case, without its port, brackets and final
// dot.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}
