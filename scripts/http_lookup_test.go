package scripts_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// slow answers requests one after the other. A request waits until the test sends to the channel.
type slow chan chan struct{}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := make(chan struct{})
	s <- answer
	<-answer
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(`{"team":"t"}`)),
	}, nil
}

// TestLookupShares checks that two batches of different sources, which need the answer for
// one value at the same time, share a request of enrich.http_lookup.
func TestLookupShares(t *testing.T) {
	requests := make(slow, 2)
	c, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New()}, Embedded: scripts.FS, Modules: stdlib.Modules(), Outside: host.Outside{HTTP: requests},
	})
	if err != nil {
		t.Fatal(err)
	}
	const name = "enrich.http_lookup"
	r, _ := c.Lookup(name)
	n, sink := componenttest.New(t, name+".default"), flowtest.NewSink("sink")
	comp := n.Build(t, r, arguments(t, r, name, hostileArgs[name]+`
script {
	limits { time = "30s" }
	allow { http = ["https://hook.example/*"] }
}
forward_to = [prometheus.echo.x.receiver]`, sink))
	n.Run(t, comp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	series := batch.NewInterner(0).Intern([]batch.Label{{Name: "__name__", Value: "up"}, {Name: "host", Value: "a"}}, nil, time.Time{})
	send := func(source uint64) chan error {
		done := make(chan error, 1)
		go func() {
			done <- comp.(flow.MetricsConsumer).ConsumeMetrics(ctx, &batch.Metrics{Source: source, T: []int64{1}, V: []float64{1}, Series: []*batch.Series{series}})
		}()
		return done
	}
	first := send(batch.NewSource())
	answer := <-requests
	second := send(batch.NewSource())
	if err := n.Clock.WaitDue(ctx, 20*time.Millisecond); err != nil {
		t.Fatal("the second batch does not wait:", err)
	}
	close(answer)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	n.Clock.Advance(20 * time.Millisecond)
	select {
	case err = <-second:
	case answer := <-requests:
		t.Error("the second batch sent a request too")
		close(answer)
		err = <-second
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range sink.Batches() {
		if got, want := string(batch.AppendText(nil, b)), `up{host="a",team="t"} 1`; !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := len(sink.Batches()); got != 2 {
		t.Errorf("got %d batches, want 2", got)
	}
}
