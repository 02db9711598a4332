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

// BenchmarkReload reloads a config of 1,000 nodes in which one has changed.
func BenchmarkReload(b *testing.B) {
	const n = 1000
	config := func(number int) string {
		var s strings.Builder
		for i := range n - 1 {
			fmt.Fprintf(&s, "test.upass \"n%d\" {\n  forward_to = [test.upass.n%d.receiver]\n}\n", i, i+1)
		}
		fmt.Fprintf(&s, "test.upass \"n%d\" {\n  number = %d\n}\n", n-1, number)
		return s.String()
	}
	l := &harness{fakes: map[string]*fake{}}
	l.catalog = newCatalog(l)
	path := filepath.Join(b.TempDir(), "c.alloy")
	write := func(number int) {
		if err := os.WriteFile(path, []byte(config(number)), 0o644); err != nil {
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
	b.ReportAllocs()
	number := 0
	for b.Loop() {
		number++
		write(number)
		if err := e.Reload(ctx); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
