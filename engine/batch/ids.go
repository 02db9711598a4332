package batch

import "sync"

// ids is the process's one space of series IDs. It is a global because a Memo
// of any component is indexed by the ID of a series of any source; two spaces
// would give two live series one slot. It is touched once per new series.
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
