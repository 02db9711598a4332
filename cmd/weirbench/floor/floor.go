// Package floor sends lines from files to Loki's push endpoint with the minimum
// of work: read, split, encode, compress, post. It stores nothing, loses refused
// lines, and does not detect rotations. It shows the lowest possible cost.
package floor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"
)

// chunk is the number of bytes that are read at a time and sent as one request.
const chunk = 1 << 20

// look is the interval at which files without new data are checked.
const look = 100 * time.Millisecond

// Run reads the files that match a pattern when it starts, from their beginning,
// and sends their lines until ctx ends.
func Run(ctx context.Context, pattern, url string) (err error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("cannot find files: %w", err)
	}
	s := &sender{url: url, client: &http.Client{Transport: &http.Transport{DisableCompression: true}}, buf: make([]byte, chunk)}
	defer s.client.CloseIdleConnections()
	var files []*os.File
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return fmt.Errorf("cannot read: %w", err)
		}
		defer f.Close()
		files = append(files, f)
	}
	for {
		more := false
		for _, f := range files {
			n, err := s.file(ctx, f)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			more = more || n > 0
		}
		if more {
			continue
		}
		t := time.NewTimer(look)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
	}
}

type sender struct {
	url            string
	client         *http.Client
	buf, raw, body []byte
	lines          []byte // encoded entries
}

// file sends the next chunk of a file, up to the end of its last complete line,
// and returns its size in bytes.
func (s *sender) file(ctx context.Context, f *os.File) (int, error) {
	n, err := f.Read(s.buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("cannot read: %w", err)
	}
	text := s.buf[:n]
	end := bytes.LastIndexByte(text, '\n') + 1
	if end < n {
		if _, err := f.Seek(int64(end-n), io.SeekCurrent); err != nil {
			return 0, fmt.Errorf("cannot read: %w", err)
		}
	}
	if end == 0 {
		return 0, nil
	}
	return end, s.send(ctx, f.Name(), text[:end])
}

// send posts lines as one stream.
//
// Format:
// https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
func (s *sender) send(ctx context.Context, name string, text []byte) error {
	now := time.Now()
	s.lines = protowire.AppendString(protowire.AppendTag(s.lines[:0], 1, protowire.BytesType), fmt.Sprintf("{filename=%q}", name))
	var stamp []byte
	nanos := now.Nanosecond()
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\n')
		line := text[:i]
		text = text[i+1:]
		nanos++
		stamp = protowire.AppendVarint(append(stamp[:0], 1<<3), uint64(now.Unix()))
		stamp = protowire.AppendVarint(append(stamp, 2<<3), uint64(nanos))
		size := 2 + len(stamp) + 1 + protowire.SizeBytes(len(line))
		s.lines = protowire.AppendVarint(append(s.lines, 2<<3|2), uint64(size))
		s.lines = append(append(s.lines, 1<<3|2, byte(len(stamp))), stamp...)
		s.lines = protowire.AppendBytes(append(s.lines, 2<<3|2), line)
	}
	s.raw = protowire.AppendBytes(append(s.raw[:0], 1<<3|2), s.lines)
	if most := s2.MaxEncodedLen(len(s.raw)); cap(s.body) < most {
		s.body = make([]byte, most+binary.MaxVarintLen64)
	}
	s.body = s2.EncodeSnappy(s.body[:cap(s.body)], s.raw)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot push: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("cannot push: %s answers %s", s.url, resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
