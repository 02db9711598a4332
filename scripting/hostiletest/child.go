package hostiletest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// childCasesVar names the test that a child runs.
	childCasesVar = "WEIR_TEST_HOSTILE_CASES"
	// childMemory is what a child may have in memory, in bytes.
	childMemory = 1 << 30
	// caseTime is what a case may take: far more than any limit, as the machine may
	// be busy.
	caseTime = 5 * time.Minute
	// maxCase bounds a case and its answer, in bytes.
	maxCase = 64 << 20
)

// Child is a process of this test binary to which cases are sent that may end
// it. One that ended, hung or took too much memory is reported with its case
// and replaced.
type Child struct {
	test string

	mu      sync.Mutex
	process *process
}

type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *tail
}

// NewChild returns a child for the cases that the test of the name serves (see
// Serve). Its process starts with the first case and ends with t.
func NewChild(t testing.TB, test string) *Child {
	c := &Child{test: test}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stop()
	})
	return c
}

// Run sends a case, and fails t if the process does not survive it or if the
// function given to Serve returned an error.
func (c *Child) Run(t testing.TB, data []byte) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		p, err := start(c.test)
		if err != nil {
			t.Fatalf("cannot start a child: %v", err)
		}
		c.process = p
	}
	p := c.process
	timer := time.AfterFunc(caseTime, func() {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it prints where it hangs
		time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	})
	answer, err := p.roundTrip(data)
	hung := !timer.Stop()
	if err == nil && !hung {
		if len(answer) > 0 {
			t.Fatalf("%s", answer)
		}
		return
	}
	stderr := c.stop()
	switch {
	case hung:
		t.Fatalf("the case took longer than %s:\n%s", caseTime, stderr)
	default:
		t.Fatalf("the case ended its process (%v):\n%s", err, stderr)
	}
}

func start(test string) (*process, error) {
	// -test.paniconexit0 is what `go test` gives the parent, and what a fuzzing
	// worker has not.
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), childCasesVar+"="+test)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out), stderr: &tail{}}
	cmd.Stderr = p.stderr
	return p, cmd.Start()
}

func (p *process) roundTrip(data []byte) ([]byte, error) {
	if err := writeFrame(p.in, data); err != nil {
		return nil, err
	}
	return readFrame(p.out)
}

// stop ends the process and returns the end of what it printed.
func (c *Child) stop() string {
	p := c.process
	if c.process = nil; p == nil {
		return ""
	}
	p.in.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	rest, _ := io.ReadAll(io.LimitReader(p.out, 1<<16))
	err := p.cmd.Wait()
	return fmt.Sprintf("%v\n%s%s", err, rest, p.stderr.Bytes())
}

// Serve runs the cases that a Child sends to the test that calls it, and skips
// that test in any other process. An error of run fails the case.
func Serve(t *testing.T, open func(t testing.TB) (run func(data []byte) error)) {
	if os.Getenv(childCasesVar) != t.Name() {
		t.Skip("serves the cases of a fuzz test")
	}
	debug.SetMemoryLimit(childMemory / 2)
	debug.SetTraceback("all")
	go watchMemory()
	run := open(t)
	in := bufio.NewReader(os.Stdin)
	for {
		data, err := readFrame(in)
		if err != nil {
			return // the parent is gone or has no more cases
		}
		answer := ""
		if err := run(data); err != nil {
			answer = err.Error()
		}
		if err := writeFrame(os.Stdout, []byte(answer)); err != nil {
			return
		}
	}
}

// watchMemory ends the process when it has more than childMemory.
func watchMemory() {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(20 * time.Millisecond) {
		metrics.Read(s)
		if n := s[0].Value.Uint64() - s[1].Value.Uint64(); n > childMemory {
			panic(fmt.Sprintf("the process has %d MiB in memory, the limit is %d", n>>20, childMemory>>20))
		}
	}
}

func writeFrame(w io.Writer, data []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	_, err := w.Write(append(head, data...))
	return err
}

func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxCase {
		return nil, errors.New("the child printed something else than its answer")
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}

// tail keeps the beginning and the end of what is written to it.
type tail struct {
	head, rest bytes.Buffer
}

const tailSize = 8 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if room := tailSize - t.head.Len(); room > 0 {
		k := min(room, n)
		t.head.Write(p[:k])
		p = p[k:]
	}
	t.rest.Write(p)
	if extra := t.rest.Len() - tailSize; extra > 0 {
		t.rest.Next(extra)
	}
	return n, nil
}

// Bytes are valid once the process has ended.
func (t *tail) Bytes() []byte { return append(t.head.Bytes(), t.rest.Bytes()...) }
