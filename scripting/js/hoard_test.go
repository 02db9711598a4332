package js_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// alive is what the process holds, in bytes.
func alive() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestKeptCharacters keeps one character of each of many long lines, in calls that
// are too short for a look after each.
func TestKeptCharacters(t *testing.T) {
	fx := build(t, strings.Replace(logsHook(`batch.each((r: any) => { kept.push(r.line[0]) }); batch.dropWhere("true")`), "export default", "const kept: any = []\nexport default", 1), "")
	const lines, size = 150, 1_000_000
	before := alive()
	for i := range lines {
		fx.sendLogs(t, fmt.Sprintf("{app=\"a\"} %d%s\n", i, strings.Repeat("x", size)))
	}
	if h := fx.Health(); h.State != component.Healthy {
		t.Fatal(h.Message)
	}
	if more := alive() - before; more > lines*size/2 {
		t.Errorf("%d lines of %d bytes keep %d MiB alive", lines, size, more>>20)
	}
	runtime.KeepAlive(fx)
}

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
