package node

import "sync/atomic"

// trust records whether a version of a script works, to distinguish a broken
// script from a record that it cannot process. It is safe for concurrent use.
type trust struct {
	works  atomic.Bool
	blamed atomic.Int64 // records that were withheld since its last success
	skip   atomic.Int32 // batches that are not split
}

// If the script succeeds on no record of a batch, the records are to blame if
// it has succeeded on other records and fails on these in a number of tries. If
// they exceed a limit, one try is enough. A script that has never succeeded
// gets more tries. The number of consecutive withheld records is limited: a
// script that fails on so many is broken.
const (
	blameTries      = 3
	blameMost       = 100
	blameTriesFirst = 8
	blameMostFirst  = 10
)

// skipBatches is the number of batches that are not split after a batch of
// which no part succeeded.
const skipBatches = 15

// worked records that a call succeeded, at least on some of its records.
func (t *trust) worked() {
	if !t.works.Load() {
		t.works.Store(true)
	}
	if t.blamed.Load() != 0 {
		t.blamed.Store(0)
	}
}

// blames reports whether n records are withheld so that the script can
// continue. The script failed on all of them in the given number of tries.
// limit means that it exceeded a limit.
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

// isolated records on how many records of a batch a script succeeded, after it
// failed on the whole batch.
func (t *trust) isolated(good int) {
	if good == 0 {
		t.skip.Store(skipBatches)
	}
}

// broken reports whether the script is not called for parts of a batch, because
// it recently failed on all parts of one.
func (t *trust) broken() bool {
	if t.skip.Load() <= 0 {
		return false
	}
	t.skip.Add(-1)
	return true
}
