package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Server is a set of targets that listen on loopback.
type Server struct {
	o       Options
	body    *Body
	control net.Listener
	targets []*one

	frozen  atomic.Bool
	aborted atomic.Int64
	bytes   atomic.Int64
}

// one is a single target.
type one struct {
	*Server
	number   int
	listener net.Listener

	// A scrape that is not read to its end does not count, and the next one gets
	// the same body. Therefore, a target answers one scrape at a time.
	mu      sync.Mutex
	scrapes int
	refused int // number of scrapes while frozen
	pace    pace
}

// Stats counts the served scrapes.
type Stats struct {
	Series  int            `json:"series"`  // per target
	Scrapes map[string]int `json:"scrapes"` // by address
	Refused map[string]int `json:"refused"` // by address: scrapes while it was frozen
	Aborted int64          `json:"aborted"` // scrapes that were not read to their end
	Late    int64          `json:"late"`    // how often a target was not scraped for one and a half of its intervals
	Bytes   int64          `json:"bytes"`   // size of the bodies as they were sent
}

// Total returns the scrapes of all targets.
func (s Stats) Total() (n int64) {
	for _, scrapes := range s.Scrapes {
		n += int64(scrapes)
	}
	return n
}

// Listen opens the ports, which are free ones that the system chooses.
func Listen(o Options) (_ *Server, err error) {
	s := &Server{o: o}
	if s.body, err = NewBody(o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.control, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("cannot listen for control commands: %w", err)
	}
	for i := range o.Targets {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cannot listen as target %d: %w", i, err)
		}
		s.targets = append(s.targets, &one{Server: s, number: i, listener: l})
	}
	return s, nil
}

func (s *Server) close() {
	if s.control != nil {
		s.control.Close()
	}
	for _, t := range s.targets {
		t.listener.Close()
	}
}

// Body returns the body of the targets.
func (s *Server) Body() *Body { return s.body }

// Control returns the address of the control endpoint: GET /stats, POST
// /freeze and POST /thaw.
func (s *Server) Control() string { return s.control.Addr().String() }

// Addresses returns the addresses of the targets.
func (s *Server) Addresses() []string {
	out := make([]string, len(s.targets))
	for i, t := range s.targets {
		out[i] = t.listener.Addr().String()
	}
	return out
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(s.Stats()) })
	mux.HandleFunc("POST /freeze", func(http.ResponseWriter, *http.Request) { s.Freeze(true) })
	mux.HandleFunc("POST /thaw", func(http.ResponseWriter, *http.Request) { s.Freeze(false) })
	servers := []*http.Server{{Handler: mux}}
	listeners := []net.Listener{s.control}
	for _, t := range s.targets {
		servers = append(servers, &http.Server{Handler: t})
		listeners = append(listeners, t.listener)
	}
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() {
			if err := server.Serve(listeners[i]); !errors.Is(err, http.ErrServerClosed) {
				errs[i] = err
			}
		})
	}
	<-ctx.Done()
	for _, server := range servers {
		server.Close()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Freeze makes the targets answer 503, or normally again. When it returns, no
// scrape is being answered in the previous way.
func (s *Server) Freeze(frozen bool) {
	s.frozen.Store(frozen)
	s.Stats() // waits for the scrapes that are being answered
}

// Stats returns the statistics so far.
func (s *Server) Stats() Stats {
	st := Stats{Series: s.body.Len(), Scrapes: make(map[string]int, len(s.targets)), Refused: map[string]int{}}
	for _, t := range s.targets {
		t.mu.Lock()
		st.Late += t.pace.countLate(time.Now(), t.o.Interval)
		st.Scrapes[t.listener.Addr().String()] = t.scrapes
		if t.refused > 0 {
			st.Refused[t.listener.Addr().String()] = t.refused
		}
		t.mu.Unlock()
	}
	st.Aborted, st.Bytes = s.aborted.Load(), s.bytes.Load() // read after waiting for scrapes
	return st
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// ServeHTTP answers a scrape.
func (t *one) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozen.Load() {
		t.refused++
		http.Error(w, "the bench is over", http.StatusServiceUnavailable)
		return
	}
	t.pace.recordScrape(time.Now(), t.o.Interval)
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	*buf = t.body.Append((*buf)[:0], t.number, t.scrapes+1)
	w.Header().Set("Content-Type", t.o.Format.contentType())
	n, err := t.write(w, r, *buf)
	t.bytes.Add(int64(n))
	if err != nil || r.Context().Err() != nil {
		t.aborted.Add(1)
		return
	}
	t.scrapes++
}

func (t *one) write(w http.ResponseWriter, r *http.Request, body []byte) (int, error) {
	if t.o.Gzip == GzipAlways || t.o.Gzip == GzipAccept && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		out := &counter{w: w}
		zw := compressors.Get().(*gzip.Writer)
		defer compressors.Put(zw)
		zw.Reset(out)
		if _, err := zw.Write(body); err != nil {
			return out.n, err
		}
		return out.n, zw.Close()
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	return w.Write(body)
}

var compressors = sync.Pool{New: func() any {
	zw, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return zw
}}

// counter counts the bytes that are written.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}
