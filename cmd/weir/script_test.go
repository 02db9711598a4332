package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/control"
	"github.com/weir-run/weir/engine/storage"
	"github.com/weir-run/weir/plugin"
	"github.com/weir-run/weir/plugin/examples/go/scale"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// TestMain runs the test binary as weir, for the scripts and for the sandbox.
// TestMain makes the test binary weir, and the plugin acme when weir starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_PLUGIN") != "" {
		plugin.Serve(plugin.Options{Version: "v1.0.0", Licence: "Apache-2.0", Components: []component.Registration{scale.Registration()}})
		return
	}
	testscript.Main(m, map[string]func(){"weir": main})
}

// TestScript runs the command lines of testdata/script. Besides testscript's own
// commands there are:
//
//	readme         writes the files that the README and docs show
//	target         serves a metrics page at $TARGET, and takes remote writes at
//	               $SINK; at $HANG it never answers them
//	ready DIR      waits until the weir with that storage path is ready
//	received RE    waits until a sample that matches has arrived at $SINK; with !, none has arrived yet
//	fetch DIR PATH FILE
//	               writes the answer of that weir to FILE
//	answers DIR PATH RE
//	               waits until the answer of that weir matches
//	posted DIR PATH BODY RE
//	               posts to that weir until its answer matches, a status and a
//	               text; with own: before the path, to the address of a node
//	overtcp DIR AUTH METHOD PATH RE
//	               makes a request to that weir's port and checks its answer: a
//	               status, headers and a text; AUTH is token or ''. With !, it must
//	               not match
//	opened FILE RE
//	               opens the link in FILE, as a browser with cookies does, and
//	               checks a status, headers and a text
//	asked DIR PROMQL RE
//	               waits until that weir's sandbox returns a matching result
//	signal NAME DIR [again]
//	               sends SIGTERM, SIGINT, SIGHUP or SIGKILL to that weir; again and again
//	               until it has ended
//	holdopen DIR N
//	               waits until N nodes of that weir listen, and sends each the beginning
//	               of a request or a message without the rest
//	logged FORMAT FILE
//	               checks that every line of FILE is logfmt or json, and that there
//	               is one
//	exitcode N CMD…
//	               runs a command that must exit with code N
func TestScript(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "script")
	var files []string // nil means all files
	if raceDetector && testing.Short() {
		// Commands that run one after the other have no races, and with the race
		// detector each process takes seconds to start.
		for _, commands := range []string{"run_*", "journal_*", "state_*", "storage_*", "test_*"} {
			found, err := filepath.Glob(filepath.Join(dir, commands))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		// Its slow scripts use both cores, so that no other node gets CPU time.
		files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "run_top.txtar" })
		dir = ""
	}
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		Files:         files,
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			makefile, err := filepath.Abs(filepath.Join("..", "..", "Makefile"))
			if err != nil {
				return err
			}
			e.Setenv("MAKEFILE", makefile)
			e.Setenv("SCRIPTS", filepath.Join(filepath.Dir(makefile), "scripts"))
			e.Setenv("NO_COLOR", "1")
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			e.Setenv("PLUGIN", exe)
			s := newSink()
			e.Values["sink"] = s
			e.Defer(s.Close)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"readme": func(ts *testscript.TestScript, _ bool, _ []string) {
				blocks, err := allDocBlocks(filepath.Dir(ts.Getenv("MAKEFILE")))
				ts.Check(err)
				for _, b := range blocks {
					if b.file == "" {
						continue
					}
					path := ts.MkAbs(b.file)
					ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
					ts.Check(os.WriteFile(path, []byte(b.text), 0o600))
				}
			},
			"target": func(ts *testscript.TestScript, _ bool, _ []string) {
				s := ts.Value("sink").(*sink)
				ts.Setenv("TARGET", s.Listener.Addr().String())
				ts.Setenv("SINK", s.URL+"/write")
				ts.Setenv("HANG", s.URL+"/hang")
			},
			"ready": func(ts *testscript.TestScript, _ bool, args []string) {
				poll(ts, func() error {
					_, err := fetch(ts.MkAbs(args[0]), "/-/ready")
					return err
				})
			},
			"received": func(ts *testscript.TestScript, neg bool, args []string) {
				re := regexp.MustCompile(args[0])
				s := ts.Value("sink").(*sink)
				if neg {
					if s.has(re) == nil {
						ts.Fatalf("a sample that matches %s has come", re)
					}
					return
				}
				poll(ts, func() error { return s.has(re) })
			},
			"fetch": func(ts *testscript.TestScript, _ bool, args []string) {
				body, err := fetch(ts.MkAbs(args[0]), args[1])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(body), 0o600))
			},
			"answers": func(ts *testscript.TestScript, _ bool, args []string) {
				re := regexp.MustCompile(args[2])
				poll(ts, func() error {
					body, err := fetch(ts.MkAbs(args[0]), args[1])
					if err == nil && !re.MatchString(body) {
						err = fmt.Errorf("no %s in %s", re, body)
					}
					return err
				})
			},
			"posted": func(ts *testscript.TestScript, _ bool, args []string) {
				re := regexp.MustCompile(args[3])
				poll(ts, func() error {
					answer, err := post(ts.MkAbs(args[0]), args[1], args[2])
					if err == nil && !re.MatchString(answer) {
						err = fmt.Errorf("no %s in %s", re, answer)
					}
					return err
				})
			},
			"overtcp": func(ts *testscript.TestScript, neg bool, args []string) {
				answer, err := overTCP(ts.MkAbs(args[0]), args[1], args[2], args[3])
				ts.Check(err)
				if regexp.MustCompile(args[4]).MatchString(answer) == neg {
					ts.Fatalf("got %s", answer)
				}
			},
			"opened": func(ts *testscript.TestScript, _ bool, args []string) {
				jar, err := cookiejar.New(nil)
				ts.Check(err)
				resp, err := (&http.Client{Jar: jar}).Get(strings.TrimSpace(ts.ReadFile(args[0])))
				ts.Check(err)
				answer, err := answerOf(resp)
				ts.Check(err)
				if !regexp.MustCompile(args[1]).MatchString(answer) {
					ts.Fatalf("got %s", answer)
				}
			},
			"holdopen": func(ts *testscript.TestScript, _ bool, args []string) {
				var all [][]string
				poll(ts, func() error {
					status, err := fetch(ts.MkAbs(args[0]), "/api/v0/status")
					all = nodeAddress.FindAllStringSubmatch(status, -1)
					if n := fmt.Sprint(len(all)); err == nil && n != args[1] {
						err = fmt.Errorf("%s nodes listen, not %s", n, args[1])
					}
					return err
				})
				for _, m := range all {
					conn, err := net.Dial("tcp", m[1])
					ts.Check(err)
					ts.Defer(func() { conn.Close() })
					_, err = conn.Write([]byte("POST /loki/api/v1/push HTTP/1.1\r\nHost: weir\r\nContent-Length: 1000\r\n\r\nabc"))
					ts.Check(err)
				}
			},
			"asked": func(ts *testscript.TestScript, _ bool, args []string) {
				re := regexp.MustCompile(args[2])
				poll(ts, func() error { return asked(ts.MkAbs(args[0]), args[1], re) })
			},
			"signal": func(ts *testscript.TestScript, _ bool, args []string) {
				b, err := os.ReadFile(filepath.Join(ts.MkAbs(args[1]), "weir.pid"))
				ts.Check(err)
				var owner storage.Owner
				ts.Check(json.Unmarshal(b, &owner))
				p, err := os.FindProcess(owner.PID)
				ts.Check(err)
				sig := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "HUP": syscall.SIGHUP, "KILL": os.Kill}[args[0]]
				ts.Check(p.Signal(sig))
				if len(args) > 2 {
					poll(ts, func() error {
						if err := p.Signal(sig); err == nil {
							return errors.New("it still runs")
						}
						return nil
					})
				}
			},
			"logged": func(ts *testscript.TestScript, _ bool, args []string) {
				text := ts.ReadFile(args[1])
				if text == "" {
					ts.Fatalf("%s is empty", args[1])
				}
				for line := range strings.Lines(text) {
					if args[0] == "logfmt" && !logfmtLine.MatchString(line) || args[0] == "json" && !json.Valid([]byte(line)) {
						ts.Fatalf("this line is not %s: %s", args[0], line)
					}
				}
			},
			"exitcode": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				got := 0
				if exit, ok := errors.AsType[*exec.ExitError](err); ok {
					got = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if fmt.Sprint(got) != args[0] {
					ts.Fatalf("exit code %d, want %s", got, args[0])
				}
			},
		},
	})
}

// logfmtLine matches a logfmt line with the keys that all lines have.
var logfmtLine = regexp.MustCompile(`^ts=\S+ level=(debug|info|warn|error) msg=("(\\.|[^"\\])*"|[^\s"=]+)( [\w.]+=("(\\.|[^"\\])*"|[^\s"=]*))*\n$`)

// poll calls ok until it returns nil. The tested process is a separate one, so
// there is no event to wait for.
func poll(ts *testscript.TestScript, ok func() error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("not within three minutes: %v", err)
		}
	}
}

func fetch(dir, path string) (string, error) {
	resp, err := control.Client(dir).Get(control.URL(path))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return string(b), err
}

// ownAddress matches the address of weir's own port in the status.
var ownAddress = regexp.MustCompile(`"debug": \{\s+"address": "([^"]+)"`)

func overTCP(dir, auth, method, path string) (answer string, err error) {
	status, err := fetch(dir, "/api/v0/status")
	if err != nil {
		return "", err
	}
	m := ownAddress.FindStringSubmatch(status)
	if m == nil {
		return "", fmt.Errorf("no address in the status:\n%s", status)
	}
	req, err := http.NewRequest(method, "http://"+m[1]+path, nil)
	if err != nil {
		return "", err
	}
	if auth == "token" {
		token, err := os.ReadFile(filepath.Join(dir, control.TokenFile))
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	return answerOf(resp)
}

// answerOf returns a status, headers and a text.
func answerOf(resp *http.Response) (string, error) {
	defer resp.Body.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "%d ", resp.StatusCode)
	for name, values := range resp.Header {
		for _, v := range values {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	b.WriteString("\n")
	_, err := io.Copy(&b, resp.Body)
	return b.String(), err
}

// nodeAddress matches the address on which a node listens, in its health message.
var nodeAddress = regexp.MustCompile(`"message": "listening on (?:http://|tcp )([^"]+)"`)

var ownURL = regexp.MustCompile(`"listening": "([^"]+)"`)

func post(dir, path, body string) (answer string, err error) {
	c, to := control.Client(dir), control.URL(path)
	if own, ok := strings.CutPrefix(path, "own:"); ok {
		status, err := fetch(dir, "/api/v0/status")
		if err != nil {
			return "", err
		}
		m := ownURL.FindStringSubmatch(status)
		if m == nil {
			return "", errors.New("no node listens on an address of its own")
		}
		c, to = http.DefaultClient, "http://"+m[1]+own
	}
	resp, err := c.Post(to, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, b), err
}

// sandboxURL matches the URL of the endpoint in the status.
var sandboxURL = regexp.MustCompile(`"url": "(http://[^"]+)/api/v1/write"`)

func asked(dir, promql string, want *regexp.Regexp) error {
	status, err := fetch(dir, "/api/v0/status")
	if err != nil {
		return err
	}
	m := sandboxURL.FindStringSubmatch(status)
	if m == nil {
		return fmt.Errorf("no endpoint in the status:\n%s", status)
	}
	resp, err := http.Get(m[1] + "/api/v1/query?" + url.Values{"query": {promql}}.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && !want.Match(b) {
		err = fmt.Errorf("no %s in %s", want, b)
	}
	return err
}

// sink is a scrape target and a remote write endpoint.
type sink struct {
	*httptest.Server

	mu      sync.Mutex
	samples []string // name{label="value"} value
}

func newSink() *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, "# TYPE temperature_celsius gauge\ntemperature_celsius{room=\"lab\"} 21.5\ntemperature_celsius{room=\"hall\"} 17\n")
		case "/write":
			if err := s.acceptBody(r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		case "/hang":
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			s.mu.Lock()
			s.samples = append(s.samples, "a request hangs")
			s.mu.Unlock()
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	return s
}

func (s *sink) acceptBody(body io.Reader) error {
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if b, err = snappy.Decode(nil, b); err != nil {
		return err
	}
	var req prompb.WriteRequest
	if err := req.Unmarshal(b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ts := range req.Timeseries {
		var name string
		var labels []string
		for _, l := range ts.Labels {
			if l.Name == "__name__" {
				name = l.Value
			} else {
				labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
			}
		}
		for _, v := range ts.Samples {
			s.samples = append(s.samples, fmt.Sprintf("%s{%s} %v", name, strings.Join(labels, ","), v.Value))
		}
	}
	return nil
}

func (s *sink) has(re *regexp.Regexp) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.samples {
		if re.MatchString(line) {
			return nil
		}
	}
	return fmt.Errorf("no %s in %d samples:\n%s", re, len(s.samples), strings.Join(s.samples, "\n"))
}
