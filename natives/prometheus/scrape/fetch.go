package scrape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var errBodySizeLimit = errors.New("body size limit exceeded")

// statusError is the status of a response that is not 200 OK.
type statusError string

func (e statusError) Error() string { return "server returned HTTP status " + string(e) }

// body is a buffer for a response. Its buf has at least one byte of capacity
// after its length.
type body struct {
	buf []byte
	gz  *gzip.Reader
	in  *bufio.Reader

	places int      // number of places that it occupies: one in each of the first rooms
	full   [][]byte // the chunks of a large body that precede buf, while it is read
	size   int      // of full
}

var bodies = sync.Pool{New: func() any { return new(body) }}

func (b *body) free() {
	for _, c := range append(b.full, b.buf) {
		keepBuffer(c)
	}
	b.full, b.size = nil, 0
	if cap(b.buf) > rooms[0].above {
		b.buf = nil
	}
	b.buf = b.buf[:0]
	b.releaseMemory()
	if b.in != nil {
		b.in.Reset(nil) // must not retain the connection
	}
	bodies.Put(b)
}

// fetch reads the response of a target into into and returns its Content-Type.
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
		// Read a short rest, so that the connection can be reused.
		io.CopyN(io.Discard, resp.Body, 4<<10)
		return "", statusError(resp.Status)
	}
	var r io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if r, err = into.gunzip(r); err != nil {
			return "", err
		}
	}
	limit := int64(s.cfg.BodySizeLimit)
	if limit == 0 {
		limit = maxBody
	}
	err = into.read(ctx, r, limit)
	if errors.Is(err, errBodySizeLimit) {
		err = fmt.Errorf("%w: the body has %d bytes or more, uncompressed (body_size_limit sets how many there may be)", err, limit)
	}
	return resp.Header.Get("Content-Type"), err
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

// read reads all of r. It returns an error if the body has limit bytes or more.
func (b *body) read(ctx context.Context, r io.Reader, limit int64) error {
	b.buf = b.buf[:0]
	for {
		if cap(b.buf)-len(b.buf) < 512 {
			if err := b.grow(ctx); err != nil {
				return err
			}
		}
		free := b.buf[len(b.buf) : cap(b.buf)-1]
		free = free[:min(int64(len(free)), limit-int64(b.size+len(b.buf)))]
		n, err := r.Read(free)
		b.buf = b.buf[:len(b.buf)+n]
		if int64(b.size+len(b.buf)) >= limit {
			return errBodySizeLimit
		}
		if err == io.EOF {
			b.join()
			return nil
		}
		if err != nil {
			return err
		}
	}
}
