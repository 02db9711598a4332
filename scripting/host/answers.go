package host

import (
	"errors"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/egress"
)

const (
	// maxAnswer limits a recorded answer, in bytes.
	maxAnswer = 64 << 10
	// maxSetupAnswers and maxSetupBytes limit the answers to setup that are kept.
	maxSetupAnswers = 32
	maxSetupBytes   = 64 << 10
)

// Recorder passes on the answers of external systems to the scripts of a node. The
// zero value is ready to use and does nothing. It is safe for concurrent use.
type Recorder struct {
	f atomic.Pointer[func(component.Answer)]
}

// Start begins a recording. It returns false if there is one already.
func (r *Recorder) Start(f func(component.Answer)) (stop func(), ok bool) {
	if !r.f.CompareAndSwap(nil, &f) {
		return nil, false
	}
	return func() { r.f.CompareAndSwap(&f, nil) }, true
}

// secretName matches the names of environment variables that usually contain secrets.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|credential|auth|cookie|_?key$|api_?key|private|dsn$|_pat$`)

// Beginning returns the answers that the scripts got before they received records.
func (w *Access) Beginning() (out []component.Answer) {
	for _, name := range w.needs.Env {
		if v, ok := w.env[name]; ok {
			out = append(out, component.Answer{Kind: component.AnswerEnv, Key: name, Setup: true, Text: v, Secret: secretName.MatchString(name), Large: len(v) > maxAnswer})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(out, w.setup...)
}

// answered records an answer, which is made only if it is needed.
func (w *Access) answered(k *Call, answer func() component.Answer) {
	var f *func(component.Answer)
	if w.recorder != nil {
		f = w.recorder.f.Load()
	}
	if k == nil || f == nil && !k.Setup {
		return
	}
	a := answer()
	a.Time, a.Setup = k.Clock.Now(), k.Setup
	if len(a.Text)+len(a.Stderr) > maxAnswer {
		a.Text, a.Stderr, a.Large = "", "", true
	}
	if k.Setup {
		w.keepSetup(a)
	}
	if f != nil {
		(*f)(a)
	}
}

func (w *Access) keepSetup(a component.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.setup) == maxSetupAnswers {
		return
	}
	if w.setupBytes += len(a.Text) + len(a.Stderr); w.setupBytes > maxSetupBytes {
		a.Text, a.Stderr, a.Large = "", "", true
	}
	w.setup = append(w.setup, a)
}

// unrecorded are headers of responses that a recorded test does not need, or that
// contain secrets.
var unrecorded = []string{"Connection", "Content-Length", "Date", "Set-Cookie", "Authorization", "Proxy-Authenticate", "Www-Authenticate"}

func httpAnswer(req *egress.Request, resp *egress.Response, err error) component.Answer {
	a := component.Answer{Kind: component.AnswerHTTP, Key: orGet(req.Method) + " " + req.URL}
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Status, a.Text = resp.Status, string(resp.Body)
	for name, values := range resp.Header {
		if !slices.Contains(unrecorded, name) {
			if a.Header == nil {
				a.Header = map[string]string{}
			}
			a.Header[name] = strings.Join(values, ", ")
		}
	}
	return a
}

func orGet(method string) string {
	if method == "" {
		return http.MethodGet
	}
	return strings.ToUpper(method)
}

func fileAnswer(path string, body []byte, err error, secret bool) component.Answer {
	a := component.Answer{Kind: component.AnswerFile, Key: path, Text: string(body), Secret: secret}
	if err != nil {
		a.Error, a.Absent = err.Error(), errors.Is(err, fs.ErrNotExist)
	}
	return a
}

// CommandKey is how recordings and tests name a run of a program: its name without
// the folder, and its arguments.
func CommandKey(c egress.Command) string {
	return strings.Join(append([]string{path.Base(filepath.ToSlash(c.Path))}, c.Args...), " ")
}

func execAnswer(c egress.Command, res egress.CommandResult, err error) component.Answer {
	a := component.Answer{Kind: component.AnswerExec, Key: CommandKey(c), Status: res.Code, Text: res.Stdout, Stderr: res.Stderr}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}
