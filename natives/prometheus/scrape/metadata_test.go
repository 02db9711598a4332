package scrape

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// TestSharedMetadata: equal metadata is shared, different metadata is not, and
// entries are removed when they are not referenced any more.
func TestSharedMetadata(t *testing.T) {
	help := []byte("what a target says")
	m := batch.Metadata{Type: "counter", Help: alias(help), Unit: "bytes", Family: "f"}
	a := metadata.share(m)
	want := batch.Metadata{Type: "counter", Help: "what a target says", Unit: "bytes", Family: "f"}
	if metadata.share(m) != a || metadata.share(want) != a || *a != want {
		t.Errorf("%v has two places", m)
	}
	for _, change := range []func(*batch.Metadata){
		func(m *batch.Metadata) { m.Type = "gauge" }, func(m *batch.Metadata) { m.Help = "" },
		func(m *batch.Metadata) { m.Unit = "" }, func(m *batch.Metadata) { m.Family = "g" },
	} {
		o := want
		change(&o)
		if got := metadata.share(o); got == a || *got != o {
			t.Errorf("%v became %v", o, *got)
		}
	}
	clear(help)
	if *a != want {
		t.Errorf("%v changed with the body", *a)
	}

	for i := range 1000 {
		metadata.share(batch.Metadata{Help: fmt.Sprint("garbage ", i)})
	}
	known := func() int {
		metadata.mu.Lock()
		defer metadata.mu.Unlock()
		return len(metadata.known)
	}
	for i := 0; known() > 100; i++ { // metadata of other tests is removed too
		if i == 1000 {
			t.Fatalf("%d are known still", known())
		}
		runtime.GC()
	}
	runtime.KeepAlive(a)
}
