package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/weir-run/weir/cmd/weir/sandbox"
)

// TestMain runs the test binary as the program that Start runs.
func TestMain(m *testing.M) {
	switch dir := os.Getenv("SANDBOX_TEST_DIR"); {
	case os.Getenv("SANDBOX_TEST_FAIL") != "":
		os.Exit(3)
	case dir != "":
		o := sandbox.Options{ListenAddr: "127.0.0.1:0", Dir: dir, Logger: slog.New(slog.DiscardHandler)}
		if err := sandbox.Serve(context.Background(), o, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
