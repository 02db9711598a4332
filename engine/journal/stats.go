package journal

import (
	"maps"
	"time"
)

// DropReasons are the reasons why a journal itself drops blocks, sorted.
var DropReasons = []string{"corrupt", "disk_full", "max_age", "max_size"}

// Stats are the statistics of a journal at one moment.
type Stats struct {
	Bytes        int64           // on disk
	Segments     int             // on disk
	Blocks       int64           // pending
	Samples      int64           // pending
	Kinds        map[uint8]int64 // Samples by Block.Kind
	PendingBytes int64           // payloads of the pending blocks
	Oldest       time.Time       // when the oldest pending block was appended; zero if none is pending
	SkippedBytes int64           // that were not blocks: damage and unfinished writes

	DroppedBlocks  map[string]int64           // by reason, since Open; corrupt may be too low if the end of a segment is lost
	DroppedSamples map[string]int64           // by reason, since Open; without the samples of blocks with a damaged header
	DroppedKinds   map[string]map[uint8]int64 // DroppedSamples by Block.Kind
}

// Stats returns the current statistics. The caller owns the maps.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	st := Stats{
		Bytes: j.size, Segments: len(j.segments),
		Blocks: j.pending.blocks, Samples: j.pending.samples, PendingBytes: j.pending.bytes,
		Kinds: maps.Clone(j.pending.kinds), SkippedBytes: j.skipped,
		DroppedBlocks: map[string]int64{}, DroppedSamples: map[string]int64{}, DroppedKinds: map[string]map[uint8]int64{},
	}
	for reason, t := range j.dropped {
		st.DroppedBlocks[reason], st.DroppedSamples[reason], st.DroppedKinds[reason] = t.blocks, t.samples, maps.Clone(t.kinds)
	}
	st.Oldest = j.oldest()
	return st
}

// Waiting returns the number of pending blocks, and how long the oldest has
// waited. Setting the clock does not affect the age of blocks from this
// process.
func (j *Journal) Waiting() (blocks int64, age time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if oldest := j.oldest(); !oldest.IsZero() {
		age = j.now().Sub(oldest)
	}
	return j.pending.blocks, age
}

// oldest returns when the oldest pending block was appended, or zero if none is
// pending. mu is held.
func (j *Journal) oldest() (oldest time.Time) {
	for _, l := range j.shards {
		var t int64
		if len(l.inflight) > 0 {
			t = l.inflight[0].time
		} else if len(l.queue) > 0 {
			t = l.queue[0].time
		}
		if at := time.UnixMilli(t); t != 0 && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}
