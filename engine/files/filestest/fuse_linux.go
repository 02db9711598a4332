package filestest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Dead mounts a file system that answers when it is mounted and never again, as
// one does whose server is gone, and returns where. It skips the test if this
// process may not mount one. When the test ends, all that waits for it fails.
//
// Protocol: https://docs.kernel.org/filesystems/fuse.html
func Dead(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("cannot open /dev/fuse: %v", err)
	}
	// t.TempDir would list it when it cleans up.
	dir, err := os.MkdirTemp("", "dead")
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid())
	if err := syscall.Mount("dead", dir, "fuse.dead", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		syscall.Close(fd)
		os.Remove(dir)
		t.Skipf("cannot mount a FUSE file system: %v", err)
	}
	end := sync.OnceFunc(func() {
		syscall.Close(fd) // ends what waits
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("cannot unmount %s: %v", dir, err)
		}
		os.Remove(dir)
	})
	t.Cleanup(end)
	// The first request is FUSE_INIT; a struct fuse_out_header and a struct
	// fuse_init_out answer it.
	buf := make([]byte, 1<<17)
	if _, err := syscall.Read(fd, buf); err != nil {
		t.Skipf("cannot read from FUSE: %v", err)
	}
	const size = 16 + 64
	le := binary.NativeEndian
	out := make([]byte, size)
	le.PutUint32(out[0:], size)
	copy(out[8:16], buf[8:16]) // unique
	le.PutUint32(out[16:], 7)  // major
	le.PutUint32(out[20:], 31) // minor
	le.PutUint32(out[36:], 1<<16)
	if _, err := syscall.Write(fd, out); err != nil {
		t.Skipf("cannot answer FUSE: %v", err)
	}
	return filepath.Join(dir, "below")
}
