package node_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("WEIR_TEST_SINK_DIR"); dir != "" {
		sinkForever(dir, os.Getenv("WEIR_TEST_SINK_URL"))
	}
	goleak.VerifyTestMain(m)
}
