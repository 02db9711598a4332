package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
)

// instances is a config of n instances of a declare with ten nodes, in a chain,
// of which the first has another number.
func instances(n, number int) string {
	var s strings.Builder
	s.WriteString("declare \"pipe\" {\n  argument \"to\" { }\n  argument \"n\" {\n    optional = true\n    default  = 0\n  }\n")
	for i := range 9 {
		fmt.Fprintf(&s, "  test.upass \"n%d\" {\n    forward_to = [test.upass.n%d.receiver]\n  }\n", i, i+1)
	}
	s.WriteString("  test.upass \"n9\" {\n    forward_to = argument.to.value\n    number     = argument.n.value\n  }\n")
	s.WriteString("  export \"receiver\" {\n    value = test.upass.n0.receiver\n  }\n}\ntest.sink \"s\" { }\n")
	for i := range n {
		fmt.Fprintf(&s, "pipe \"p%d\" {\n  to = [test.sink.s.receiver]\n  n  = %d\n}\n", i, number*(1-min(i, 1)))
	}
	return s.String()
}

// BenchmarkModules starts and reloads 1,000 instances of a declare with ten
// nodes; in a reload one argument of one of them has changed.
func BenchmarkModules(b *testing.B) {
	const n = 1000
	setup := func(b *testing.B) (e *engine.Engine, path string, stop func(), write func(number int)) {
		l := &harness{fakes: map[string]*fake{}}
		l.catalog = newCatalog(l)
		path = filepath.Join(b.TempDir(), "c.alloy")
		write = func(number int) {
			if err := os.WriteFile(path, []byte(instances(n, number)), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		write(0)
		e, err := engine.New(engine.Options{Catalogs: []component.Catalog{l.catalog}, Logger: slog.New(slog.DiscardHandler), NoWatch: true})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, path) }()
		if err := e.FilesChanged(ctx, nil); err != nil { // returns after the start
			b.Fatal(err)
		}
		return e, path, func() {
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		}, write
	}
	b.Run("start", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, stop, _ := setup(b)
			b.StopTimer()
			stop()
			b.StartTimer()
		}
	})
	b.Run("reload", func(b *testing.B) {
		e, _, stop, write := setup(b)
		b.ReportAllocs()
		number := 0
		for b.Loop() {
			number++
			write(number)
			if err := e.Reload(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		stop()
	})
}

// BenchmarkForeach follows an export that takes one of 10,000 items away and
// brings it back.
func BenchmarkForeach(b *testing.B) {
	l := &harness{fakes: map[string]*fake{}}
	l.catalog = newCatalog(l)
	path := filepath.Join(b.TempDir(), "c.alloy")
	config := "test.value \"v\" { }\nforeach \"l\" {\n  collection = encoding.from_json(test.value.v.value)\n  var = \"each\"\n  template {\n    test.upass \"p\" {\n      number = each\n    }\n  }\n}\n"
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(engine.Options{Catalogs: []component.Catalog{l.catalog}, Logger: slog.New(slog.DiscardHandler), NoWatch: true})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, path) }()
	var all [2]string
	for n := range all {
		var s strings.Builder
		s.WriteString("[0")
		for i := 1; i < 10_000-n; i++ {
			fmt.Fprintf(&s, ",%d", i)
		}
		all[n] = s.String() + "]"
	}
	last := make(chan struct{}) // when the last item has begun, and when it has ended
	l.onRun = func(ctx context.Context, f *fake) error {
		if f.id == "foreach.l/foreach_9999_1/test.upass.p" {
			last <- struct{}{}
			<-ctx.Done()
			last <- struct{}{}
		}
		return nil
	}
	follow := func(n int) {
		l.mu.Lock()
		f := l.fakes["test.value.v"]
		l.mu.Unlock()
		f.o.Export(valueExports{Value: all[n]})
		<-last
	}
	if err := e.FilesChanged(ctx, nil); err != nil {
		b.Fatal(err)
	}
	follow(0)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		follow(n % 2)
	}
	if n%2 == 0 {
		follow(1)
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
