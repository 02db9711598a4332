// Package sink receives data from collectors through Prometheus remote write 1.0
// and 2.0, Loki's push API, and as plain lines. It counts the data and checks
// whether every scrape and every line arrived. It stores nothing and responds
// immediately, unless a fault is set.
//
// Loss is detected with sequence series (see package target): their values are
// the numbers of the scrapes, so missing, duplicate and late numbers are visible.
// Lines of package logfiles contain such numbers. Native histograms and staleness
// markers are counted but have no numbers. A request that is refused only affects
// Refused.
package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

// maxRequest is the maximum size of a request, compressed or decompressed.
const maxRequest = 256 << 20

// Server is a remote write endpoint on loopback.
type Server struct {
	listener net.Listener
	faults   faults

	mu     sync.Mutex
	ledger *ledger
	dec    decoder
}

// Listen opens the port; "127.0.0.1:0" is a free one.
func Listen(addr string) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for remote writes: %w", err)
	}
	return &Server{listener: l, ledger: newLedger()}, nil
}

// Address returns the address of the server.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	server := &http.Server{Handler: s.Handler()}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve remote writes: %w", err)
	}
	return nil
}

// Handler handles writes at POST /api/v1/write, pushes at POST /loki/api/v1/push,
// lines at POST /lines, and control commands: GET /stats (with ?detail=1 also by
// instance), POST /reset, POST /faults with a Fault and DELETE /faults.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/write", s.write)
	mux.HandleFunc("POST /loki/api/v1/push", s.push)
	mux.HandleFunc("POST /lines", s.lines)
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(s.Stats(r.FormValue("detail") != ""))
	})
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ledger = newLedger()
	})
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			http.Error(w, "cannot read the fault: "+err.Error(), http.StatusBadRequest)
			return
		}
		if err := s.SetFault(&f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("DELETE /faults", func(http.ResponseWriter, *http.Request) { s.faults.set(nil) })
	return mux
}

// SetFault sets the fault of the server, until another one is set. nil removes
// it.
func (s *Server) SetFault(f *Fault) error {
	if f != nil {
		if err := f.Validate(); err != nil {
			return err
		}
	}
	s.faults.set(f)
	return nil
}

// Stats returns the statistics so far.
func (s *Server) Stats(detail bool) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.snapshot(detail)
}

type scratch struct {
	in  bytes.Buffer
	raw []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *Server) write(w http.ResponseWriter, r *http.Request) {
	v2, err := isV2(r.Header.Get("Content-Type"))
	var took written
	book := func(b *scratch) (err error) {
		took, err = s.book(v2, b)
		return err
	}
	s.receiveRequest(w, r, err, book, func() {
		s.answered(took)
		if v2 {
			h := w.Header()
			h.Set("X-Prometheus-Remote-Write-Samples-Written", strconv.FormatInt(took.samples, 10))
			h.Set("X-Prometheus-Remote-Write-Histograms-Written", strconv.FormatInt(took.histograms, 10))
			h.Set("X-Prometheus-Remote-Write-Exemplars-Written", "0")
		}
	})
}

// receiveRequest reads and decompresses a request, records it with book, and
// sends the response of the current fault or a successful one. It calls good
// before a successful response to set headers. unsupported is the error in the
// content type, or nil.
func (s *Server) receiveRequest(w http.ResponseWriter, r *http.Request, unsupported error, book func(*scratch) error, good func()) {
	f, refused := s.applyFault(w, r)
	if refused {
		return
	}
	b := scratches.Get().(*scratch)
	defer scratches.Put(b)
	if unsupported != nil {
		s.invalid(w, http.StatusUnsupportedMediaType, unsupported)
		return
	}
	b.in.Reset()
	if _, err := b.in.ReadFrom(io.LimitReader(r.Body, maxRequest)); err != nil {
		return // the client disconnected
	}
	if n, err := s2.DecodedLen(b.in.Bytes()); err != nil || n > maxRequest {
		s.invalid(w, http.StatusBadRequest, fmt.Errorf("cannot decompress the request: %d bytes, %w", n, err))
		return
	}
	var err error
	if b.raw, err = s2.Decode(b.raw[:cap(b.raw)], b.in.Bytes()); err != nil {
		s.invalid(w, http.StatusBadRequest, fmt.Errorf("cannot decompress the request: %w", err))
		return
	}
	if err := book(b); err != nil {
		s.invalid(w, http.StatusBadRequest, err)
		return
	}
	if f != nil && f.answer(w) {
		return
	}
	good()
	w.WriteHeader(http.StatusNoContent)
}

// applyFault returns the fault for a request, or nil, and whether the fault
// refused the request.
func (s *Server) applyFault(w http.ResponseWriter, r *http.Request) (f *Fault, refused bool) {
	f, over := s.faults.next()
	if f == nil {
		return nil, false
	}
	f.wait(r, over)
	if f.Keep || !f.silent() && f.Status == 0 {
		return f, false
	}
	s.refuse()
	f.answer(w)
	return f, true
}

// written counts the content of one request.
type written struct {
	samples, histograms int64
	scrapes             []*scrape
}

// book records a request in the ledger.
func (s *Server) book(v2 bool, b *scratch) (written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ledger
	before := l.stats
	s.dec.v = l
	hash := xxhash.Sum64(b.in.Bytes())
	_, l.repeated = l.bodies[hash]
	l.visited = nil
	var err error
	if v2 {
		err = s.dec.v2(b.raw)
	} else {
		err = s.dec.v1(b.raw)
	}
	if err != nil {
		return written{}, err
	}
	st := &l.stats
	st.Requests++
	if l.repeated {
		st.Repeats++
	} else {
		l.bodies[hash] = struct{}{}
	}
	st.Bytes += int64(b.in.Len())
	st.Raw += int64(len(b.raw))
	if v2 {
		st.V2++
	}
	histograms := st.Histograms - before.Histograms
	all := st.Samples + st.Report + st.Stale - before.Samples - before.Report - before.Stale
	return written{samples: all - histograms, histograms: histograms, scrapes: l.visited}, nil
}

// answered records that a request gets a successful response now.
func (s *Server) answered(w written) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, sc := range w.scrapes {
		sc.answered = now
	}
}

func (s *Server) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.stats.Refused++
}

func (s *Server) invalid(w http.ResponseWriter, status int, err error) {
	s.mu.Lock()
	s.ledger.stats.Invalid++
	s.mu.Unlock()
	http.Error(w, err.Error(), status)
}

// isV2 returns the version of a request.
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/
func isV2(contentType string) (bool, error) {
	typ, params, err := mime.ParseMediaType(contentType)
	if err != nil || typ != "application/x-protobuf" {
		return false, fmt.Errorf("cannot take content type %q: send application/x-protobuf", contentType)
	}
	switch params["proto"] {
	case "", "prometheus.WriteRequest":
		return false, nil
	case "io.prometheus.write.v2.Request":
		return true, nil
	}
	return false, fmt.Errorf("cannot take message %q", params["proto"])
}
