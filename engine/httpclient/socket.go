package httpclient

import (
	"io"
	"net"
	"os"
	"syscall"
)

// socket is a TCP connection that reads and writes by raw system calls.
//
// Go's own Read and Write announce each system call to the scheduler, in case it
// blocks. In a process that is mostly idle, this wakes the runtime's monitor
// thread, which then polls every 20 µs and costs more than the call itself. The
// sockets here are non-blocking, so a call returns at once and need not be
// announced. RATIONALE.md has the measurement.
//
// As with every net.Conn that has one owner, at most one goroutine reads and at
// most one writes at a time.
type socket struct {
	net.Conn
	raw syscall.RawConn

	// State of the call in progress.
	in, out       []byte
	read, written int
	inErr, outErr error

	tryRead, tryWrite func(fd uintptr) bool // created once: a closure allocates
}

// newSocket returns a socket for c, or c itself if it is not a TCP connection or
// if the platform has no raw calls.
func newSocket(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !hasRaw {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	s := &socket{Conn: c, raw: raw}
	s.tryRead = func(fd uintptr) bool {
		s.read, s.inErr = rawRead(fd, s.in)
		return s.inErr != syscall.EAGAIN
	}
	s.tryWrite = func(fd uintptr) bool {
		n, err := rawWrite(fd, s.out[s.written:])
		s.written += n
		s.outErr = err
		return err != nil && err != syscall.EAGAIN || s.written == len(s.out)
	}
	return s
}

// Read waits until bytes have arrived and reads them.
func (s *socket) Read(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	s.in, s.inErr = buf, nil
	err := s.raw.Read(s.tryRead)
	s.in = nil
	switch {
	case err != nil:
		return 0, err
	case s.inErr != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: s.RemoteAddr(), Err: os.NewSyscallError("read", s.inErr)}
	case s.read == 0:
		return 0, io.EOF
	}
	return s.read, nil
}

// Write writes all bytes of buf unless it returns an error.
func (s *socket) Write(buf []byte) (int, error) {
	if len(buf) == 0 {
		return 0, nil
	}
	s.out, s.written, s.outErr = buf, 0, nil
	err := s.raw.Write(s.tryWrite)
	s.out = nil
	if err == nil && s.outErr != nil {
		err = &net.OpError{Op: "write", Net: "tcp", Addr: s.RemoteAddr(), Err: os.NewSyscallError("write", s.outErr)}
	}
	return s.written, err
}
