package write

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/push"
)

// kind is the consequence of an answer for a request.
type kind int

const (
	final    kind = iota // the request is done; lines in lost are dropped
	again                // the request must be sent again
	tooLarge             // the request must be split
)

// answer is the result of one request.
type answer struct {
	kind       kind
	status     int            // 0 if there was no response
	err        error          // nil if all lines were accepted
	lost       map[string]int // minimum number of refused lines, by reason
	all        bool           // all lines were refused
	retryAfter time.Duration  // the delay that the endpoint requested, or 0
	unreached  bool           // no connection could be made
	stoodStill bool           // weir was suspended: the timeout was not the fault of the endpoint
}

// outcome returns the label value for metrics.
func (a *answer) outcome() string {
	switch {
	case a.kind == again:
		return "retry"
	case a.kind == tooLarge:
		return "too_large"
	case a.err == nil:
		return "ok"
	case a.all:
		return "rejected"
	}
	return "partial"
}

// statusBlocked is Loki's default status if the ingestion of the tenant is
// blocked.
const statusBlocked = 260

// classifyAnswer determines the consequence of a response.
//
// Loki refuses single lines and streams, stores the other ones, and answers 400
// with a message that names some of the refused ones. Errors that concern the
// whole request have the same status. All errors that do not concern the lines,
// such as a wrong password or path, are retried: the lines wait until somebody
// fixes the problem.
func classifyAnswer(s *settings, r *request, resp *http.Response, message string, now time.Time) (a answer) {
	a.status = resp.StatusCode
	class := a.status / 100
	if class == 2 && a.status != statusBlocked {
		return a
	}
	message = strings.TrimSpace(message)
	a.err = fmt.Errorf("server answered %s: %s", resp.Status, short(message))
	if a.status == http.StatusNotFound && !strings.HasSuffix(s.args.URL, push.Path) {
		a.err = fmt.Errorf("%w; Loki takes lines at %s: see the endpoint's url", a.err, push.Path)
	}
	if class != 2 && isTooLarge(a.status, message) {
		a.kind = tooLarge
		return a
	}
	if class != 2 && a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity && (a.status != http.StatusTooManyRequests || s.args.RetryOnHTTP429) {
		a.kind, a.retryAfter = again, outbox.RetryAfter(resp.Header, now)
		return a
	}
	_, lines := r.size()
	a.lost = refused(r, message)
	n := 0
	for _, of := range a.lost {
		n += of
	}
	if n == 0 || n > lines {
		reason := "rejected"
		switch {
		case n > 0: // the message names more lines than the request has: use the most frequent reason
			for of, k := range a.lost {
				if k > a.lost[reason] || k == a.lost[reason] && of < reason {
					reason = of
				}
			}
		case a.status == statusBlocked:
			reason = "blocked"
		case a.status == http.StatusTooManyRequests:
			reason = "rate_limited"
		}
		a.lost, n = map[string]int{reason: lines}, lines
	}
	a.all = n == lines
	return a
}

// short truncates a message for the log.
func short(message string) string {
	const most = 1000
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}

// isTooLarge reports whether a request was too large as a whole. If an ingester
// or a gateway behind Loki's distributor refused it, only the message shows this.
func isTooLarge(status int, message string) bool {
	if status == http.StatusRequestEntityTooLarge {
		return true
	}
	m := strings.ToLower(message)
	for _, text := range []string{"message size too large", "message larger than max", "request body too large", "entity too large"} {
		if strings.Contains(m, text) {
			return true
		}
	}
	return false
}

// A refusal is a message with which Loki refuses lines. The group n, if it
// matched, is the number of lines; the group s is a stream whose lines are all
// refused. Without either, it is one line.
type refusal struct {
	reason string
	re     *regexp.Regexp
}

// many precedes a message that stands for several errors.
const many = `(?:(?P<n>\d+) errors like: )?`

// refusals are tried in order at each position of the message.
//
// Format: pkg/validation/validate.go, pkg/ingester/stream.go and
// pkg/chunkenc/interface.go of Loki 3.7
var refusals = []refusal{
	{"line_too_long", regexp.MustCompile(many + `max entry size '\d+' bytes exceeded for stream '`)},
	{"timestamp", regexp.MustCompile(many + `entry for stream '.*?' has timestamp too (?:old|new):`)},
	{"metadata", regexp.MustCompile(many + `stream '.*?' (?:includes structured metadata, but|has structured metadata too large|has too many structured metadata labels)`)},
	{"label_limit", regexp.MustCompile(many + `entry for stream '(?P<s>.*?)' has \d+ label names; limit`)},
	{"label_limit", regexp.MustCompile(many + `stream '(?P<s>.*?)' has label (?:name|value) too long:`)},
	{"invalid_labels", regexp.MustCompile(many + `stream '(?P<s>.*?)' has duplicate label name:`)},
	{"invalid_labels", regexp.MustCompile(many + `error parsing labels '(?P<s>.*?)' with error:`)},
	{"invalid_labels", regexp.MustCompile(many + `error at least one label pair is required per stream(?P<s>)`)},
	{"label_limit", regexp.MustCompile(many + `missing required labels '.*?' for user '.*?' for stream '(?P<s>.*?)'`)},
	{"stream_limit", regexp.MustCompile(many + `[Mm]aximum active stream limit exceeded when trying to create stream (?P<s>\{.*?\}), reduce`)},
	{"blocked", regexp.MustCompile(many + `ingestion blocked for user '.*?' \(policy:`)},
	// An ingester names only the last stream that it refused.
	{"rate_limited", regexp.MustCompile(`(?s)reason: 'Per stream rate limit exceeded.*?total ignored: (?P<n>\d+) out of \d+`)},
	{"out_of_order", regexp.MustCompile(`total ignored: (?P<n>\d+) out of \d+`)},
}

// refused returns the number of refused lines according to a message, by reason.
func refused(r *request, message string) map[string]int {
	lost := map[string]int{}
	for _, form := range refusals {
		group := func(m []string, name string) (string, bool) {
			if i := form.re.SubexpIndex(name); i > 0 {
				return m[i], true
			}
			return "", false
		}
		for _, m := range form.re.FindAllStringSubmatch(message, -1) {
			n := 1
			if text, _ := group(m, "n"); text != "" {
				n, _ = strconv.Atoi(text) // the caller limits numbers that overflow
			}
			if stream, ok := group(m, "s"); ok {
				n = max(n, linesOf(r, stream))
			}
			lost[form.reason] += n
		}
		message = form.re.ReplaceAllString(message, "")
	}
	return lost
}

// linesOf returns the number of lines of a stream in a request; "" is the stream
// without labels.
func linesOf(r *request, stream string) (n int) {
	if stream == "" {
		stream = "{}"
	}
	r.each(func(labels string, _ int64, _ string, _ []batch.Label) {
		if labels == stream {
			n++
		}
	})
	return n
}
