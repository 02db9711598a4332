package node

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/grant"
	"github.com/weir-run/weir/scripting/host"
)

// answers keeps the last answers of external systems to the scripts of a node, for the
// step shadow. They stay in memory. It is safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	size  int // bytes
	byKey map[answerKey]*list.Element
	order list.List // of *keptAnswer, oldest first
}

// answerKey is a hash: a request may contain secrets.
type answerKey [sha256.Size]byte

// keptAnswer is the answer to a request, or what a program did.
type keptAnswer struct {
	key    answerKey
	status int
	header http.Header
	body   []byte
	result egress.CommandResult
	size   int
}

// Bounds of what is kept, in bytes.
const (
	maxAnswers  = 1 << 20   // of a node
	maxAnswer   = 256 << 10 // a larger one is not kept
	answerBytes = 512       // of an answer without its body
)

func (a *answers) add(n *keptAnswer) {
	n.size = answerBytes + len(n.body) + len(n.result.Stdout) + len(n.result.Stderr)
	for name, values := range n.header {
		for _, v := range values {
			n.size += len(name) + len(v)
		}
	}
	if n.size > maxAnswer {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[answerKey]*list.Element{}
	}
	if old := a.byKey[n.key]; old != nil {
		a.remove(old)
	}
	a.byKey[n.key] = a.order.PushBack(n)
	for a.size += n.size; a.size > maxAnswers; {
		a.remove(a.order.Front())
	}
}

// remove is called with mu held.
func (a *answers) remove(e *list.Element) {
	n := a.order.Remove(e).(*keptAnswer)
	a.size -= n.size
	delete(a.byKey, n.key)
}

func (a *answers) find(key answerKey) (*keptAnswer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.byKey[key]
	if !ok {
		return nil, false
	}
	return e.Value.(*keptAnswer), true
}

func (a *answers) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byKey, a.size = nil, 0
	a.order.Init()
}

// record returns o such that answers are kept.
func (a *answers) record(o host.Outside) host.Outside {
	o.WrapHTTP = func(next http.RoundTripper) http.RoundTripper { return recorder{a, next} }
	run := o.Exec
	if run == nil {
		run = egress.Run
	}
	o.Exec = func(ctx context.Context, c egress.Command) (egress.CommandResult, error) {
		res, err := run(ctx, c)
		if err == nil {
			a.add(&keptAnswer{key: commandKey(c), result: res})
		}
		return res, err
	}
	return o
}

// recorder keeps the answers of next that are read to their end.
type recorder struct {
	a    *answers
	next http.RoundTripper
}

// RoundTrip sends a request.
func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	key, err := requestKey(req)
	if err != nil {
		return nil, err
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &recordedBody{ReadCloser: resp.Body, a: r.a, n: &keptAnswer{key: key, status: resp.StatusCode, header: resp.Header.Clone()}}
	return resp, nil
}

// recordedBody is a body that is kept when it has been read.
type recordedBody struct {
	io.ReadCloser
	a *answers
	n *keptAnswer // nil: it is too large, or has been kept
}

// Read reads.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.n == nil {
		return n, err
	}
	if b.n.body = append(b.n.body, p[:n]...); len(b.n.body) > maxAnswer {
		b.n = nil
	} else if err == io.EOF {
		b.a.add(b.n)
		b.n = nil
	}
	return n, err
}

func requestKey(r *http.Request) (key answerKey, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s\n", r.Method, r.URL)
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return key, err
		}
		defer body.Close()
		if _, err := io.Copy(h, body); err != nil {
			return key, err
		}
	}
	h.Sum(key[:0])
	return key, nil
}

func commandKey(c egress.Command) answerKey {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", c.Path, c.Args, c.Stdin))
}

// replayed is the outside of a version that processes input without effect: it gives
// the kept answers, and refuses everything else. It is safe for concurrent use.
type replayed struct {
	answers *answers
	what    string // what processes the input

	mu      sync.Mutex
	refused map[answerKey]string // since forget, and how it is shown
}

func (o *replayed) answer(key answerKey, shown string) (*keptAnswer, error) {
	if n, ok := o.answers.find(key); ok {
		return n, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused[key] = shown
	return nil, fmt.Errorf("%s sends no requests and runs no programs, and the running version has no recent answer for %s", o.what, shown)
}

// RoundTrip answers a request.
func (o *replayed) RoundTrip(r *http.Request) (*http.Response, error) {
	key, err := requestKey(r)
	if err != nil {
		return nil, err
	}
	n, err := o.answer(key, r.Method+" "+grant.Shown(r.URL))
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: n.status, Header: n.header.Clone(), Body: io.NopCloser(bytes.NewReader(n.body)), ContentLength: int64(len(n.body)), Request: r,
	}, nil
}

func (o *replayed) exec(_ context.Context, c egress.Command) (egress.CommandResult, error) {
	n, err := o.answer(commandKey(c), c.Path)
	if err != nil {
		return egress.CommandResult{}, err
	}
	return n.result, nil
}

// forget begins another batch.
func (o *replayed) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.refused)
}

// exceeds returns something that o has refused and other has not; "" for nothing.
func (o *replayed) exceeds(other *replayed) string {
	for key, shown := range o.refused {
		if _, ok := other.refused[key]; !ok {
			return shown
		}
	}
	return ""
}
