package node

import "sync/atomic"

// trust is what is known of whether a version of a script works, to tell one that
// is broken from a record that it cannot process. It is safe for concurrent use.
type trust struct {
	works  atomic.Bool
	blamed atomic.Int64 // records that were withheld since it worked last
	skip   atomic.Int32 // batches of which no parts are made
}

// When a batch has no record that the script works on, the records are to blame
// if it has worked on others, and fails on these at every one of some tries; it
// fails at once on those that take it beyond a limit. One that has never worked
// has more tries. What follows each other so is bounded: a script that fails on so
// many is broken.
const (
	blameTries      = 3
	blameMost       = 100
	blameTriesFirst = 8
	blameMostFirst  = 10
)

// skipBatches is how many batches cost one call each after one that no part was
// any better of.
const skipBatches = 15

// worked says that a call worked, at least on some of its records.
func (t *trust) worked() {
	if !t.works.Load() {
		t.works.Store(true)
	}
	if t.blamed.Load() != 0 {
		t.blamed.Store(0)
	}
}

// blames reports whether n records, on which the script failed in so many tries
// while it worked on none, are withheld, so that it can go on. limit says that it
// went beyond one.
func (t *trust) blames(n, tries int, limit bool) bool {
	need, most := blameTriesFirst, int64(blameMostFirst)
	switch worked := t.works.Load(); {
	case worked && limit:
		need, most = 1, blameMost
	case worked:
		need, most = blameTries, blameMost
	}
	if tries < need || t.blamed.Load()+int64(n) > most {
		return false
	}
	t.blamed.Add(int64(n))
	return true
}

// isolated says on how many records of a batch a script worked that failed on all
// of it.
func (t *trust) isolated(good int) {
	if good == 0 {
		t.skip.Store(skipBatches)
	}
}

// broken reports whether the script is not asked about parts of a batch, because
// it lately failed on all parts of one.
func (t *trust) broken() bool {
	if t.skip.Load() <= 0 {
		return false
	}
	t.skip.Add(-1)
	return true
}
