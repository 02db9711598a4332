package write

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// Encode returns the journal blocks for a batch.
func Encode(b *batch.Logs) []journal.Block {
	g := &gatherer{}
	gr := &group{s: &settings{blockSize: maxBlock, streams: newStreams(nil, time.Now)}, own: block{size: maxBlock}}
	g.addRows(gr, b)
	return append(gr.blocks, gr.own.close(0))
}

// Encoder returns a function that encodes batches as a shard does.
func Encoder() func(b *batch.Logs) (size int) {
	g := &gatherer{}
	s := &settings{blockSize: maxBlock, streams: newStreams(nil, time.Now)}
	return func(b *batch.Logs) (size int) {
		gr := &group{s: s, own: block{size: maxBlock}}
		g.addRows(gr, b)
		blocks := append(gr.blocks, gr.own.close(0))
		putBuffer(gr.own.buf)
		for _, bl := range blocks {
			size += len(bl.Payload)
			putBuffer(bl.Payload)
		}
		return size
	}
}

// Join returns the body of a request that consists of blocks.
func Join(blocks ...journal.Block) ([]byte, error) {
	r := &request{}
	for _, b := range blocks {
		_, p, err := openBlock(b)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, p)
	}
	return r.appendBody(nil), nil
}

// Judge returns the interpretation of a response to a request of blocks: the
// reasons of lost lines, or "again" or "too large".
func Judge(status int, message string, retry429 bool, blocks ...journal.Block) (lost map[string]int, what string) {
	r := &request{}
	for _, b := range blocks {
		_, p, _ := openBlock(b)
		r.parts = append(r.parts, p)
	}
	s := &settings{args: &Endpoint{RetryOnHTTP429: retry429}}
	a := classifyAnswer(s, r, &http.Response{StatusCode: status, Header: http.Header{}}, message, time.Now())
	switch a.kind {
	case again:
		return nil, "again"
	case tooLarge:
		return nil, "too large"
	}
	return a.lost, ""
}

// LongestPause sends one request and returns the maximum pause after its result.
func LongestPause(o component.Options, args *Endpoint) (time.Duration, error) {
	s := &settings{args: args, RemoteSettings: outbox.RemoteSettings{Owner: journal.Owner{URL: args.URL}, Timeout: args.RemoteTimeout}}
	if err := s.newClient(&o); err != nil {
		return 0, err
	}
	defer s.Client.CloseIdleConnections()
	sd := &sender{e: &endpoint{Remote: &outbox.Remote{Outbox: outbox.Outbox{Clock: clock.System{}}}}}
	return s.longest(sd.post(context.Background(), s, &request{})), nil
}

// AnswerError returns the error message for a response.
func AnswerError(url string, status int) string {
	resp := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{}}
	return classifyAnswer(&settings{args: &Endpoint{URL: url}}, &request{}, resp, "no", time.Now()).err.Error()
}
