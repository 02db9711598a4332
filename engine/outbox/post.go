package outbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weir-run/weir/engine/stall"
)

// answerWithin is how long the body of an answer may take once its head is
// there, which says all but a message. A server that never ends it would hold a
// shard until the request's timeout.
const answerWithin = time.Second

// stoodStill is how long after its timeout a request may end before the time
// was weir's own, which stood still, or its machine, and not the endpoint's.
const stoodStill = time.Second

// Answer is an endpoint's to a request, or its lack.
type Answer struct {
	*http.Response        // its body is read and closed
	Message        string // the body, of which no more than 64 KiB are read
	Began          time.Time
	StoodStill     bool // there is none, and it was not the endpoint that had no time
}

// Post makes one request of s, with a header that it may keep. It observes how
// long those took that had no answer; the others are the caller's to observe.
func (b *Remote) Post(ctx context.Context, s *RemoteSettings, header http.Header, body []byte) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Owner.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header = header
	defer b.Watch.Begin("send to endpoint "+b.label, s.Timeout+stall.DefaultLimit).End()
	began := time.Now()
	resp, err := s.Client.Do(req)
	if err != nil {
		took, outcome := time.Since(began), "error"
		late := ctx.Err() == context.DeadlineExceeded // not by weir's stop
		if late {
			outcome = "timeout"
		}
		b.Seconds.Observe(outcome, took)
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err // without the URL, which may hold secrets
		}
		return Answer{StoodStill: late && took > s.Timeout+stoodStill}, err
	}
	defer resp.Body.Close()
	defer time.AfterFunc(answerWithin, cancel).Stop()
	message, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // more, and the connection is not used again
	return Answer{Response: resp, Message: string(message), Began: began}, nil
}
