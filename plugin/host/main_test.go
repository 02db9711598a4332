package host_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-run/weir/plugin"
	"github.com/weir-run/weir/plugin/internal/acme"
	"github.com/weir-run/weir/plugin/internal/link"
)

// TestMain makes the test binary a plugin when weir starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv(link.Handshake.MagicCookieKey) != "" {
		plugin.Serve(plugin.Options{Version: "v1.2.3", Licence: "Apache-2.0", Components: acme.Components()})
		return
	}
	goleak.VerifyTestMain(m)
}
