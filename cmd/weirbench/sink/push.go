package sink

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// push handles a push request of Loki. It does not use weir's decoder, so that
// errors in it are detected.
func (s *Server) push(w http.ResponseWriter, r *http.Request) {
	s.receiveRequest(w, r, notPush(r.Header.Get("Content-Type")), s.bookPush, func() {})
}

// notPush returns the error in the content type of a push request, or nil.
func notPush(contentType string) error {
	if typ, _, err := mime.ParseMediaType(contentType); err != nil || typ != "application/x-protobuf" {
		return fmt.Errorf("cannot take content type %q: send application/x-protobuf", contentType)
	}
	return nil
}

// lines handles plain lines, as collectors without Loki support send them.
func (s *Server) lines(w http.ResponseWriter, r *http.Request) {
	f, refused := s.applyFault(w, r)
	if refused {
		return
	}
	b := scratches.Get().(*scratch)
	defer scratches.Put(b)
	b.in.Reset()
	if _, err := b.in.ReadFrom(http.MaxBytesReader(w, r.Body, maxRequest)); err != nil {
		return // the client disconnected
	}
	s.bookLines(b.in.Bytes())
	if f != nil {
		f.answer(w)
	}
}

// bookLines records lines in the ledger.
func (s *Server) bookLines(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.stats.Requests++
	s.ledger.stats.Bytes += int64(len(text))
	for line := range bytes.Lines(text) {
		s.ledger.line(bytes.TrimSuffix(line, []byte("\n")))
	}
}

// bookPush records a push request in the ledger, completely or not at all.
//
// Format:
// https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
func (s *Server) bookPush(b *scratch) error {
	if err := eachLine(b.raw, func([]byte) {}, func([]byte) {}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.ledger
	hash := xxhash.Sum64(b.in.Bytes())
	if _, l.repeated = l.bodies[hash]; l.repeated {
		l.stats.Repeats++
	} else {
		l.bodies[hash] = struct{}{}
	}
	l.stats.Requests++
	l.stats.Bytes += int64(b.in.Len())
	l.stats.Raw += int64(len(b.raw))
	return eachLine(b.raw, l.stream, l.line)
}

// eachLine calls stream and line for the content of a push request, in order.
func eachLine(b []byte, stream, line func([]byte)) (err error) {
	var f field
	for len(b) > 0 {
		if f, b, err = cut(b); err != nil {
			return err
		}
		if f.n != 1 {
			continue
		}
		for s := f.v; len(s) > 0; {
			if f, s, err = cut(s); err != nil {
				return err
			}
			switch f.n {
			case 1:
				stream(f.v)
			case 2:
				v, err := entryLine(f.v)
				if err != nil {
					return err
				}
				line(v)
			}
		}
	}
	return nil
}

// entryLine returns the line of an entry.
func entryLine(entry []byte) (line []byte, err error) {
	var f field
	for len(entry) > 0 {
		if f, entry, err = cut(entry); err != nil {
			return nil, fmt.Errorf("%w: an entry", err)
		}
		if f.n == 2 {
			line = f.v
		}
	}
	return line, nil
}

// stream records a stream by its labels.
func (l *ledger) stream(labels []byte) { l.streams[xxhash.Sum64(labels)] = struct{}{} }

// line records a line and its number.
func (l *ledger) line(line []byte) {
	l.stats.Lines++
	l.stats.LineBytes += int64(len(line))
	name, n, ok := logfiles.Find(line)
	if !ok {
		l.stats.Unnumbered++
		return
	}
	q := l.files[string(name)]
	if q == nil {
		q = &sequence{first: -1}
		l.files[string(name)] = q
	}
	l.number(q, n, l.repeated)
}
