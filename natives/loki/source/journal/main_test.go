package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		fmt.Fprintln(os.Stderr, readForever(dir, filepath.Join(dir, "journal"), ""))
		os.Exit(1)
	}
	if dir := os.Getenv(journaldVariable); dir != "" {
		fmt.Fprintln(os.Stderr, withJournald(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
