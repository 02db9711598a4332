package js_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// TestKeptLines keeps all of each line, until there is more than the limit.
func TestKeptLines(t *testing.T) {
	fx := build(t, strings.Replace(logsHook(`batch.each((r: any) => { kept.push(r.line) }); batch.dropWhere("true")`), "export default", "const kept: any = []\nexport default", 1), "")
	for i := 0; ; i++ {
		fx.sendLogs(t, fmt.Sprintf("{app=\"a\"} %d%s\n", i, strings.Repeat("x", 1_000_000)))
		if h := fx.Health(); h.State != component.Healthy {
			if !strings.Contains(h.Message, "limit exceeded: the script holds more than 64 MiB between calls") {
				t.Error(h.Message)
			}
			return
		}
		if i == 120 {
			t.Fatal("the script holds 120 MB")
		}
	}
}
