package oci_test

import (
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // the registry logs each request
	// The registry does not end this goroutine.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/docker/go-events.(*Broadcaster).run"))
}
