package echo_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/echo"
)

const lines = `{app="api"} @2025-01-01T00:00:00.000000001Z {trace_id="t"} level=info msg=hi
{app="api"} @2025-01-01T00:00:00.000000002Z "two\nlines"
`

func parse(t *testing.T) *batch.Logs {
	t.Helper()
	b, err := batch.ParseLogsText(lines, batch.TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPrints(t *testing.T) {
	var out bytes.Buffer
	n := componenttest.New(t, "loki.echo.e")
	r := echo.RegistrationTo(&out)
	c := n.Build(t, r, r.NewArgs())
	n.Run(t, c)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := c.(flow.LogsConsumer).ConsumeLogs(t.Context(), parse(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(strings.Repeat(lines, 5), out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestRefuses(t *testing.T) {
	r := echo.RegistrationTo(full{})
	c := componenttest.New(t, "loki.echo.e").Build(t, r, r.NewArgs())
	err := c.(flow.LogsConsumer).ConsumeLogs(t.Context(), parse(t))
	if err == nil || err.Error() != "cannot print a batch of lines: no space" {
		t.Errorf("got %v", err)
	}
}
