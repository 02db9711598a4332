package scrape

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestChurnIsBounded: a target whose series are renamed, each at a different
// time, takes no more memory after 1,000 scrapes than after 200. The memory of
// its series is bounded relative to their initial memory.
func TestChurnIsBounded(t *testing.T) {
	const series = 500
	set, c := newTestSettings(t, ""), newCache()
	r := rand.New(rand.NewPCG(1, 2))
	names := make([]int, series)
	var body []byte
	last := 0
	before := liveHeap()
	scrapes := func(n int) int64 {
		t.Helper()
		for range n {
			body = body[:0]
			for i := range names {
				if names[i] == 0 || r.IntN(20) == 0 {
					last++
					names[i] = last
				}
				body = fmt.Appendf(body, "requests_total{handler=\"/api/v1/some/path\",generation=\"%08d\"} %d\n", names[i], i)
			}
			in := newIntake(set, c, 1e12)
			if err := in.body(append(make([]byte, 0, len(body)+1), body...), textType); err != nil {
				t.Fatal(err)
			}
			for _, h := range c.gone {
				h.Release()
			}
			clear(c.gone)
			c.gone = c.gone[:0]
		}
		return liveHeap() - before
	}
	first, early, late := scrapes(1), scrapes(200), scrapes(800)
	t.Logf("%d series and a body: %d bytes at first, %d after 200 scrapes, %d after 1,000", series, first, early, late)
	if late > early+early/4 {
		t.Errorf("%d bytes after 200 scrapes, %d after 1,000", early, late)
	}
	if late > 3*first {
		t.Errorf("%d bytes at first, %d after 1,000 scrapes", first, late)
	}
	runtime.KeepAlive(c)
}

// liveHeap returns the size of the heap after collections find nothing more.
// Several collections are needed because pools, finalizers and ending goroutines
// retain memory of other tests for a while.
func liveHeap() int64 {
	var m runtime.MemStats
	least := int64(math.MaxInt64)
	for calm := 0; calm < 5; calm++ {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if now := int64(m.HeapAlloc); now < least {
			if least-now > 1<<10 {
				calm = 0
			}
			least = now
		}
	}
	return least
}
