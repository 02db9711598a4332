package files_test

import (
	"testing"

	"github.com/weir-run/weir/engine/files/filestest"
)

// TestDead is TestHang with a file system that really does not answer.
func TestDead(t *testing.T) {
	hangs(t, filestest.Dead(t))
}
