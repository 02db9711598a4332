package httpclient

import (
	"io"
	"net"
	"os"
	"syscall"
)

// socket reads and writes a connection of the operating system.
//
// Go's own Read and Write tell the scheduler that they enter the system, in case
// it takes long. Where the process was idle that wakes up a thread which watches
// over those that do, looks every 20 µs as long as anybody works, and takes more
// time than the call. A socket that would block says so at once; so nobody needs
// to watch.
type socket struct {
	net.Conn
	raw syscall.RawConn

	// Of the call that is being made; one at a time reads and one writes.
	in, out       []byte
	read, written int
	inErr, outErr error

	tryRead, tryWrite func(fd uintptr) bool // made once, because to make one allocates
}

// newSocket returns c itself where it is no socket, or where raw calls are not
// known.
func newSocket(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || rawRead == nil {
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

// Read reads what is there, or waits for it.
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

// Write writes all.
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
