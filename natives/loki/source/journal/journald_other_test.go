//go:build !linux

package journal_test

import "errors"

// withJournald is the process of a test that only runs on Linux.
func withJournald(string) error { return errors.New("there is no journald on this system") }
