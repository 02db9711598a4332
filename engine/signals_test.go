package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine/batch"
)

// TestGateTakesWhatIsPassed: a gate takes what the arguments are for by now,
// whether the config changed or what they refer to.
func TestGateTakesWhatIsPassed(t *testing.T) {
	bubble(t, func(l *harness) {
		const config = `
test.uvalue "v" { value = "metrics" }
test.either "e" {
  value      = test.uvalue.v.value
  forward_to = [test.either.next.receiver]
}
test.either "next" { forward_to = TO }
test.sink "s" { }
test.logs "l" { }
test.either "for" { forward_to = [test.either.e.receiver, test.either.next.receiver] }
`
		to := func(receivers string) string { return strings.ReplaceAll(config, "TO", receivers) }
		want := func(e, next batch.Signals) {
			t.Helper()
			synctest.Wait()
			a, _ := l.fake("test.either.for").get()
			if got := []batch.Signals{a.ForwardTo[0].Accepts(), a.ForwardTo[1].Accepts()}; got[0] != e || got[1] != next {
				t.Errorf("the gates take %s, want %s and %s", got, e, next)
			}
		}
		l.start(to("[]"))
		want(batch.SignalMetrics, bothSignals)
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "logs"})
		want(batch.SignalLogs, bothSignals)
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "either"})
		want(bothSignals, bothSignals)
		if err := l.reload(to("[test.logs.l.receiver]")); err != nil {
			t.Fatal(err)
		}
		want(batch.SignalLogs, batch.SignalLogs)
		if err := l.reload(to("[test.logs.l.receiver, test.sink.s.receiver]")); err != nil {
			t.Fatal(err)
		}
		want(bothSignals, bothSignals)
	})
}
