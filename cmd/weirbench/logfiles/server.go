package logfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Server writes files on request.
type Server struct {
	w        *Writer
	listener net.Listener

	mu   sync.Mutex
	rate int // lines per second over all files
	err  error
}

// Listen creates the files and opens a port for commands, a free one on loopback.
func Listen(o Options) (*Server, error) {
	w, err := New(o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen for commands: %w", err), w.Close())
	}
	return &Server{w: w, listener: l}, nil
}

// Control returns the address for commands.
func (s *Server) Control() string { return s.listener.Addr().String() }

// Serve writes and answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.run(ctx) })
	server := &http.Server{Handler: s.Handler()}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	err := server.Serve(s.listener)
	stop()
	cancel()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.w.Close())
}

// Handler handles GET /stats (?detail=1: by sequence), POST /write?lines=N
// (immediately, distributed over all files) and POST /rate?lines=N (per second
// from now on).
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		err := s.err
		s.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(s.w.Stats(r.FormValue("detail") != ""))
	})
	lines := func(do func(n int) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.FormValue("lines"))
			if err != nil || n < 0 {
				http.Error(w, "cannot tell how many: lines is a number", http.StatusBadRequest)
				return
			}
			if err := do(n); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}
	}
	mux.HandleFunc("POST /write", lines(s.write))
	mux.HandleFunc("POST /rate", lines(func(n int) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rate = n
		return nil
	}))
	return mux
}

// write appends lines in total, distributed as evenly as possible: a chunk to
// each file in turn.
func (s *Server) write(lines int) error {
	files := s.w.o.Files
	for done := 0; done < lines; {
		round := min(lines-done, chunk*files)
		for i := range files {
			if n := round*(i+1)/files - round*i/files; n > 0 {
				if err := s.w.Write(i, n); err != nil {
					return err
				}
			}
		}
		done += round
	}
	return nil
}

// ticks is the number of writes per second at a rate.
const ticks = 20

// run writes at the current rate.
func (s *Server) run(ctx context.Context) {
	tick := time.NewTicker(time.Second / ticks)
	defer tick.Stop()
	last, file, owed := time.Now(), 0, 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			rate := s.rate
			s.mu.Unlock()
			// Lines that a busy machine delayed are written later.
			owed += float64(rate) * now.Sub(last).Seconds()
			last = now
			n := int(owed)
			owed -= float64(n)
			next, err := s.spread(n, file)
			if file = next; err != nil {
				s.mu.Lock()
				s.err = err
				s.mu.Unlock()
				return
			}
		}
	}
}

// spread appends lines to the files in turn, starting with file, and returns the
// next file. If there are many files, each gets one line; if there are few, each
// gets several at a time.
func (s *Server) spread(lines, file int) (next int, err error) {
	files := s.w.o.Files
	each := max(1, lines/files)
	for lines > 0 {
		n := min(each, lines)
		if err := s.w.Write(file, n); err != nil {
			return file, err
		}
		lines -= n
		file = (file + 1) % files
	}
	return file, nil
}
