package scrape

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var errBodySizeLimit = errors.New("body size limit exceeded")

// statusError is an answer that is not 200 OK.
type statusError string

func (e statusError) Error() string { return "server returned HTTP status " + string(e) }

// body is a buffer for an answer. Its buf has a byte of capacity behind its
// length.
type body struct {
	buf []byte
	gz  *gzip.Reader
	in  *bufio.Reader
}

var bodies = sync.Pool{New: func() any { return new(body) }}

func (b *body) free() {
	if cap(b.buf) > 16<<20 {
		b.buf = nil
	}
	b.buf = b.buf[:0]
	if b.in != nil {
		b.in.Reset(nil) // it must not keep the connection
	}
	bodies.Put(b)
}

// fetch gets a target's answer into into and returns its Content-Type.
func (s *settings) fetch(ctx context.Context, t *target, into *body) (contentType string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", s.accept)
	req.Header.Set("Accept-Encoding", s.encoding)
	req.Header.Set("User-Agent", s.userAgent)
	req.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(t.timeout.Seconds(), 'f', -1, 64))
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// Read what little there may be, so that the connection is used again.
		io.CopyN(io.Discard, resp.Body, 4<<10)
		return "", statusError(resp.Status)
	}
	var r io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if r, err = into.gunzip(r); err != nil {
			return "", err
		}
	}
	return resp.Header.Get("Content-Type"), into.read(r, int64(s.cfg.BodySizeLimit))
}

func (b *body) gunzip(r io.Reader) (io.Reader, error) {
	if b.gz == nil {
		in := bufio.NewReader(r)
		gz, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		b.in, b.gz = in, gz
		return gz, nil
	}
	b.in.Reset(r)
	return b.gz, b.gz.Reset(b.in)
}

// read reads all of r. With a limit, a body that long or longer is an error.
func (b *body) read(r io.Reader, limit int64) error {
	b.buf = b.buf[:0]
	for {
		if cap(b.buf)-len(b.buf) < 512 {
			grown := make([]byte, len(b.buf), max(4<<10, 2*cap(b.buf)))
			copy(grown, b.buf)
			b.buf = grown
		}
		free := b.buf[len(b.buf) : cap(b.buf)-1]
		if limit > 0 && int64(len(free)) > limit-int64(len(b.buf)) {
			free = free[:limit-int64(len(b.buf))]
		}
		n, err := r.Read(free)
		b.buf = b.buf[:len(b.buf)+n]
		if limit > 0 && int64(len(b.buf)) >= limit {
			return errBodySizeLimit
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
