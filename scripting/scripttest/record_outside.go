package scripttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/host"
)

// recordedOutside answers the requests of a script with the recorded answers, and keeps
// what it has answered, which becomes the mocks of the test. Keys are those of the
// requests in the test: they were made with masked arguments.
type recordedOutside struct {
	mu      sync.Mutex
	answers []recordedAnswer
	since   time.Time // the call in the test got the answers after this time
	until   time.Time // and those until this time
	given   map[string]*scripting.Map
	failure error // why a request could not be answered, the first time
}

type recordedAnswer struct {
	component.Answer
	used bool
}

func newRecordedOutside(all []component.Answer, mask func(string) string) *recordedOutside {
	o := &recordedOutside{given: map[string]*scripting.Map{}}
	for _, a := range all {
		a.Key, a.Text, a.Stderr, a.Error = mask(a.Key), mask(a.Text), mask(a.Stderr), mask(a.Error)
		o.answers = append(o.answers, recordedAnswer{Answer: a})
	}
	return o
}

// outside is what replaces external systems in the replay.
func (o *recordedOutside) outside(granted bool) host.Outside {
	return host.Outside{HTTP: o, LookupEnv: o.lookupEnv, ReadFile: o.readFile, Exec: o.exec, GrantAll: granted, Manual: true}
}

// begin starts another call, which ended at a time.
func (o *recordedOutside) begin(ended time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since, o.until = o.until, ended
}

// take returns the mocks of the requests since the last call of take, by kind, and why
// a request could not be answered.
func (o *recordedOutside) take() (given map[string]*scripting.Map, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	given, o.given = o.given, map[string]*scripting.Map{}
	return given, o.failure
}

// find returns the best answer to a request: of the same call and with the same key if
// possible. mu is held.
func (o *recordedOutside) find(kind, key string) *recordedAnswer {
	var best *recordedAnswer
	most := 0
	for i := range o.answers {
		a := &o.answers[i]
		score := similar(kind, plainKey(a.Key), plainKey(key))
		inCall := a.Setup == o.until.IsZero() && (a.Setup || a.Time.After(o.since) && !a.Time.After(o.until))
		if a.Kind != kind || score == 0 || score < sameKey && !inCall {
			continue
		}
		if inCall {
			score += 10
		}
		if !a.used {
			score += 5
		}
		if score > most {
			best, most = a, score
		}
	}
	return best
}

const sameKey = 3

// similar returns how similar two keys are, 0 for not at all. Parts of a key may be
// masked, so that they differ.
func similar(kind, a, b string) int {
	if a == b {
		return sameKey
	}
	cut := func(s string, at int) string {
		switch kind {
		case component.AnswerHTTP:
			s, _, _ = strings.Cut(s, "?")
			if method, rest, ok := strings.Cut(s, "://"); ok && at == 1 {
				host, _, _ := strings.Cut(rest, "/")
				return method + host
			}
		case component.AnswerExec:
			s, _, _ = strings.Cut(s, " ")
		}
		return s
	}
	switch {
	case cut(a, 2) == cut(b, 2):
		return 2
	case cut(a, 1) == cut(b, 1):
		return 1
	}
	return 0
}

// plainKey returns a key without the escapes of a URL.
func plainKey(key string) string {
	if plain, err := url.QueryUnescape(strings.ReplaceAll(key, "+", "%2B")); err == nil {
		return plain
	}
	return key
}

// answer returns the recorded answer to a request, and adds the mock.
func (o *recordedOutside) answer(kind, key, shown string) (component.Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.find(kind, key)
	switch {
	case a == nil:
		return component.Answer{}, o.fail(fmt.Errorf("the test needs an answer that was not recorded: %s; the running node has probably kept an earlier answer in a variable of the script: use ctx.state, or write this test by hand", shown))
	case a.Large:
		return component.Answer{}, o.fail(fmt.Errorf("an answer is too large to be recorded: %s", shown))
	}
	a.used = true
	mocks := o.given[kind]
	if mocks == nil {
		mocks = scripting.NewMap()
		o.given[kind] = mocks
	}
	reply := mockOf(a.Answer)
	switch before, ok := mocks.Get(key); {
	case !ok:
		mocks.Set(key, &scripting.List{Items: []scripting.Value{reply}})
	default:
		list := before.(*scripting.List)
		list.Items = append(list.Items, reply)
	}
	return a.Answer, nil
}

func (o *recordedOutside) fail(err error) error {
	if o.failure == nil {
		o.failure = err
	}
	return err
}

// mockOf returns an answer as a test gives it.
func mockOf(a component.Answer) scripting.Value {
	m := scripting.NewMap()
	switch {
	case a.Kind == component.AnswerFile && (a.Error != "" || a.Absent):
		return false
	case a.Kind == component.AnswerFile || a.Kind == component.AnswerEnv:
		return a.Text
	case a.Error != "":
		m.Set("error", a.Error)
	case a.Kind == component.AnswerHTTP:
		m.Set("status", int64(a.Status))
		m.Set("body", a.Text)
		if len(a.Header) > 0 {
			m.Set("headers", valueOf(a.Header))
		}
	default:
		m.Set("code", int64(a.Status))
		m.Set("stdout", a.Text)
		if a.Stderr != "" {
			m.Set("stderr", a.Stderr)
		}
	}
	return m
}

// RoundTrip answers a request.
func (o *recordedOutside) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.Method + " " + req.URL.String()
	a, err := o.answer(component.AnswerHTTP, key, key)
	if err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	header := http.Header{}
	for name, v := range a.Header {
		header.Set(name, v)
	}
	return &http.Response{
		StatusCode: a.Status, Status: fmt.Sprintf("%d %s", a.Status, http.StatusText(a.Status)), Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(a.Text)), ContentLength: int64(len(a.Text)), Request: req,
	}, nil
}

func (o *recordedOutside) readFile(name string, limit int64) ([]byte, error) {
	a, err := o.answer(component.AnswerFile, name, "the file "+name)
	switch {
	case err != nil:
		return nil, err
	case mockOf(a) == false:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case int64(len(a.Text)) > limit:
		return nil, fmt.Errorf("cannot read %s: %w: it has %d bytes", name, egress.ErrTooLarge, len(a.Text))
	}
	return []byte(a.Text), nil
}

func (o *recordedOutside) exec(_ context.Context, c egress.Command) (out egress.CommandResult, err error) {
	key := host.CommandKey(c)
	a, err := o.answer(component.AnswerExec, key, "the command "+key)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return egress.CommandResult{Code: a.Status, Stdout: a.Text, Stderr: a.Stderr}, err
}

func (o *recordedOutside) lookupEnv(name string) (string, bool) {
	i := slices.IndexFunc(o.answers, func(a recordedAnswer) bool { return a.Kind == component.AnswerEnv && a.Key == name })
	if i < 0 {
		return "", false // it was not set
	}
	a, err := o.answer(component.AnswerEnv, name, "the environment variable "+name)
	return a.Text, err == nil
}
