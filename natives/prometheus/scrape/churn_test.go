package scrape

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestChurnIsBounded: a target whose series are renamed, each at a time of its
// own, takes no more memory after 1,000 scrapes than after 200, and what its
// series take is bounded by what they took when they were new.
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

// liveHeap returns what is left once collections find nothing more: what other
// tests left takes several, since pools, finalizers and goroutines that end
// hold it for a while.
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
