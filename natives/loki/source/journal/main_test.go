package journal_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		fmt.Fprintln(os.Stderr, readForever(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
