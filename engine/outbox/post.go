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

// answerWithin is the maximum time for the body of a response after its header,
// which contains everything but a message. A server that never ends the body
// would block a shard until the request's timeout.
const answerWithin = time.Second

// stoodStill is the time after its timeout from which on a late request is
// attributed to a pause of weir or its machine, and not to the endpoint.
const stoodStill = time.Second

// Answer is the response of an endpoint, or describes why there is none.
type Answer struct {
	*http.Response        // its body is read and closed
	Message        string // at most 64 KiB of the body
	Began          time.Time
	StoodStill     bool // there is no response, because weir or its machine was paused
}

// Post sends one request of s. It may keep header. It observes the duration of
// requests without a response; the caller observes that of all other requests.
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
		late := ctx.Err() == context.DeadlineExceeded // not because weir stops
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
	message, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // if there is more, the connection is not reused
	return Answer{Response: resp, Message: string(message), Began: began}, nil
}
