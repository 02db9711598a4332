package discoverytest

import (
	"net"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// DNS is a DNS server, over UDP and TCP.
type DNS struct {
	mu       sync.Mutex
	records  map[string][]string
	down     bool
	only     string
	truncate bool
}

// NewDNS returns a server on addr, which is closed at the end of the test, or an
// error if it cannot listen.
func NewDNS(t testing.TB, addr string) (*DNS, error) {
	s := &DNS{records: map[string][]string{}}
	for _, network := range []string{"udp", "tcp"} {
		ready := make(chan struct{})
		d := &dns.Server{Addr: addr, Net: network, Handler: s, NotifyStartedFunc: func() { close(ready) }}
		done := make(chan error, 1)
		go func() { done <- d.ListenAndServe() }()
		select {
		case <-ready:
		case err := <-done:
			return nil, err
		}
		t.Cleanup(func() {
			if err := d.Shutdown(); err != nil {
				t.Error(err)
			}
			<-done
		})
	}
	return s, nil
}

// Set replaces the answer to a question, such as "a.example.org. A". The records
// are in the format of zone files. Without records, the name does not exist.
func (s *DNS) Set(question string, records ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[question] = records
}

// SetDown makes the server fail for one name, or for all names if name is empty.
func (s *DNS) SetDown(down bool, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.only = down, name
}

// SetTruncate makes answers too long for UDP.
func (s *DNS) SetTruncate(truncate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truncate = truncate
}

// ServeDNS answers one question.
func (s *DNS) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := new(dns.Msg).SetReply(q)
	name := q.Question[0].Name
	texts := s.records[name+" "+dns.TypeToString[q.Question[0].Qtype]]
	_, udp := w.RemoteAddr().(*net.UDPAddr)
	switch {
	case s.down && (s.only == "" || s.only == name):
		r.Rcode = dns.RcodeServerFailure
	case len(texts) == 0:
		r.Rcode = dns.RcodeNameError
	case s.truncate && udp:
		r.Truncated = true
	default:
		for _, t := range texts {
			rr, err := dns.NewRR(t)
			if err != nil {
				panic(err)
			}
			r.Answer = append(r.Answer, rr)
		}
	}
	_ = w.WriteMsg(r)
}
