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

// kind is what an answer means for a request.
type kind int

const (
	final    kind = iota // it is done, but for the lines that are lost
	again                // it is to be sent again
	tooLarge             // it is to be sent in smaller ones
)

// answer is what became of one request.
type answer struct {
	kind       kind
	status     int            // 0 if there was no answer
	err        error          // nil: all of it was accepted
	lost       map[string]int // lines that are, by reason; at least so many
	all        bool           // all of them
	retryAfter time.Duration  // what the endpoint asked for, 0 if nothing
	unreached  bool           // there was no connection
	stoodStill bool           // it was not the endpoint that had no time
}

// outcome is the answer's in metrics.
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

// statusBlocked is what Loki answers when the tenant's ingestion is blocked,
// unless it is configured to something else.
const statusBlocked = 260

// classifyAnswer says what an answer means.
//
// Loki refuses single lines and streams, stores the others, and answers 400 with
// a message that names some of those it refused. So is what it says about the
// whole request. All that is not about the lines but about the way to them, such
// as a password or a path that is not right, is retried: they wait until somebody
// sets it right.
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
		case n > 0: // it names more than there are; by the most
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

// short cuts a message to what a log can hold.
func short(message string) string {
	const most = 1000
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") + "…"
	}
	return message
}

// isTooLarge reports whether a request was too large as a whole. To Loki's
// distributor that is what an ingester or a gateway says, so it is in the message
// only.
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

// A refusal is a form of message that Loki has for what it refuses. The group n,
// if it took part, is how many; the group s is a stream, all of whose lines are
// refused. Without either it is one line.
type refusal struct {
	reason string
	re     *regexp.Regexp
}

// many is what stands before a message that there is more than one of.
const many = `(?:(?P<n>\d+) errors like: )?`

// refusals are tried in order at each place.
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
	// Of all that an ingester refuses it names the last stream.
	{"rate_limited", regexp.MustCompile(`(?s)reason: 'Per stream rate limit exceeded.*?total ignored: (?P<n>\d+) out of \d+`)},
	{"out_of_order", regexp.MustCompile(`total ignored: (?P<n>\d+) out of \d+`)},
}

// refused counts the lines that a message says were refused, by reason.
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
				n, _ = strconv.Atoi(text) // beyond what fits is cut off by the caller
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

// linesOf returns how many lines of a stream there are in a request; "" is one
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
