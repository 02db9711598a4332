package batch

import "sync"

// ids allocates the IDs of all series in the process. It is global because a
// Memo of any component is indexed by the IDs of series from any source. With
// two allocators, two live series could share one slot. It is used once per new
// series.
var ids idSpace

type idSpace struct {
	mu   sync.Mutex
	free []uint32
	next uint32
}

func (p *idSpace) acquireID() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		id := p.free[n-1]
		p.free = p.free[:n-1]
		return id
	}
	p.next++
	return p.next - 1
}

func (p *idSpace) releaseID(id uint32) {
	p.mu.Lock()
	p.free = append(p.free, id)
	p.mu.Unlock()
}
