package debugtest

import (
	"net"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/debug"
)

// Run calls the hook metrics of a script with a batch in text form, when the client
// that it returns has set its breakpoints. The session prints done, or the error, and
// ends.
func Run(t testing.TB, language scripting.Language, f scripting.File, in string) *Client {
	t.Helper()
	b, err := batch.ParseText(in, batch.TextOptions{T: 1_700_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	s := debug.New("node", server)
	d := s.Program(t.Context())
	p, err := language.Compile(f, scripting.Env{Debug: d})
	if err != nil {
		t.Fatal(err)
	}
	s.Load(d.Files)
	served, ran := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(server) // the client goes away
	}()
	go func() {
		defer close(ran)
		select {
		case <-s.Configured():
		case <-served:
			return
		}
		if err := call(p, b); err != nil {
			s.End("error: " + err.Error())
			return
		}
		s.End("done")
	}()
	c := New(t, client, client)
	t.Cleanup(func() { // t.Context has ended, so that the script goes on
		client.Close()
		<-served
		<-ran
		server.Close()
		c.Closed()
	})
	return c
}

func call(p scripting.Program, b *batch.Metrics) error {
	vm, err := p.NewVM(scripting.Host{})
	if err != nil {
		return err
	}
	cache := view.NewCache(view.Options{})
	defer cache.Close()
	var w view.Metrics
	w.Reset(b, cache, time.UnixMilli(1_700_000_000_000))
	vm.Begin(&scripting.Call{Time: time.Minute, Records: b.Len(), Now: time.UnixMilli(1_700_000_000_000)})
	if err := vm.Metrics(&w); err != nil {
		return err
	}
	return vm.End()
}
