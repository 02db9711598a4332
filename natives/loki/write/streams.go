package write

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/push"
)

// streams caches the labels that are sent for each stream, and records which
// streams are active.
type streams struct {
	external map[string]string
	now      func() time.Time
	memo     batch.Memo[*sent]

	mu sync.Mutex
	at map[uint64]time.Time // by the hash of what is sent; only used if there is a limit
}

// sent is what is sent for a stream.
type sent struct {
	labels string
	tenant string // the stream's own tenant, or "" for that of the endpoint
	hash   uint64 // of labels and tenant
}

func newStreams(external map[string]string, now func() time.Time) *streams {
	return &streams{external: external, now: now, at: map[uint64]time.Time{}}
}

// sent returns what is sent for a stream.
func (m *streams) sent(s *batch.Stream) *sent {
	if v, ok := m.memo.Get(s); ok {
		return v
	}
	v := &sent{tenant: s.Label(push.TenantLabel)}
	with := s
	if len(m.external) > 0 {
		var b batch.Builder
		b.Reset(s)
		for name, value := range m.external {
			if b.Get(name) == "" {
				b.Set(name, value)
			}
		}
		with = b.Series(nil)
		defer with.Release()
	}
	v.labels = string(push.AppendLabels(nil, with))
	v.hash = maphash.String(seed, v.tenant+"\x00"+v.labels)
	return m.memo.Put(s, v)
}

// seed is random, because streams with the same hash count as one.
var seed = maphash.MakeSeed()

// activeFor is how long a stream counts as active after its last line.
const activeFor = 10 * time.Minute

// admit reports whether a stream may be sent if at most most streams may be
// active; 0 is no limit.
func (m *streams) admit(v *sent, most int) bool {
	if most == 0 {
		return true
	}
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.at[v.hash]; !ok && len(m.at) >= most {
		return false
	}
	m.at[v.hash] = now
	return true
}

// removeIdle removes streams that ended or have been inactive for activeFor.
func (m *streams) removeIdle() {
	m.memo.Sweep(nil)
	old := m.now().Add(-activeFor)
	m.mu.Lock()
	defer m.mu.Unlock()
	for h, at := range m.at {
		if at.Before(old) {
			delete(m.at, h)
		}
	}
}
