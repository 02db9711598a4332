package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a program that a round started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // file with its output
	gone chan struct{} // closed when it has ended
	err  error         // set when gone is closed
}

// stopWithin is how long a program may take to end.
const stopWithin = 30 * time.Second

// startProcess starts cmd on the given cores. Its output goes to name.log in dir,
// unless cmd redirects it.
func startProcess(name string, cmd *exec.Cmd, dir string, on cores) (*process, error) {
	p := &process{name: name, cmd: cmd, log: filepath.Join(dir, name+".log"), gone: make(chan struct{})}
	f, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the output of %s: %w", name, err)
	}
	defer f.Close()
	if cmd.Stdout == nil {
		cmd.Stdout = f
	}
	cmd.Stderr = f
	if n := on.count(); n > 0 {
		cmd.Env = append(cmd.Environ(), fmt.Sprintf("GOMAXPROCS=%d", n))
	}
	if err := on.start(cmd); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

// ended returns an error if the process has ended, because no process may end by
// itself.
func (p *process) ended() error {
	select {
	case <-p.gone:
		return fmt.Errorf("%s ended by itself (%w); its last output:\n%s", p.name, errOf(p.err), p.outputTail())
	default:
		return nil
	}
}

func errOf(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// outputTail returns the end of the output of the process.
func (p *process) outputTail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return string(bytes.TrimSpace(b))
}

// stop ends the process with SIGTERM, and kills it if that takes too long.
func (p *process) stop() error {
	if err := p.ended(); err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		_ = p.cmd.Process.Kill() // Windows has no signals
	}
	select {
	case <-p.gone:
		return nil
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.gone
		return fmt.Errorf("cannot stop %s within %s: it was killed", p.name, stopWithin)
	}
}

// Hello is the line in which targets and sink report their addresses.
type Hello struct {
	Control string   `json:"control"`           // base URL of the control commands
	Write   string   `json:"write,omitempty"`   // URL for remote writes
	Push    string   `json:"push,omitempty"`    // URL for pushes of logs
	Lines   string   `json:"lines,omitempty"`   // URL for plain lines
	TCP     string   `json:"tcp,omitempty"`     // address for plain lines
	Targets []string `json:"targets,omitempty"` // addresses
}

// child is targets or sink in a separate process.
type child struct {
	*process
	Hello
	stdin io.Closer
}

// startChild starts this program with args and --until-eof.
func startChild(name, dir string, on cores, args ...string) (_ *child, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	cmd := exec.Command(exe, append(args, "--until-eof")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	defer r.Close()
	cmd.Stdout = w
	p, err := startProcess(name, cmd, dir, on)
	w.Close()
	if err != nil {
		return nil, err
	}
	c := &child{process: p, stdin: stdin}
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read where %s is: %w; its output:\n%s", name, err, p.outputTail()), c.stop())
	}
	if err := json.Unmarshal(line, &c.Hello); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read where %s is from %q: %w", name, line, err), c.stop())
	}
	return c, nil
}

// stop ends the child by closing its standard input.
func (c *child) stop() error {
	c.stdin.Close()
	select {
	case <-c.gone:
		return nil
	case <-time.After(stopWithin):
		return c.process.stop()
	}
}

var client = &http.Client{Timeout: 10 * time.Second}

// command sends a control command and decodes the response into out, unless that
// is nil.
func (c *child) command(ctx context.Context, method, path string, out any) error {
	if err := c.ended(); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Control+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", c.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot ask %s: %s %s answers %s", c.name, method, path, resp.Status)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot read the answer of %s: %w", c.name, err)
	}
	return nil
}
