package engine

import "sync"

// mailbox contains the pending jobs of the worker, in order of arrival. Posting
// never waits, so a component may do it anywhere, even inside a call by the
// worker.
type mailbox struct {
	mu     sync.Mutex
	jobs   []func()
	dirty  map[string]bool // IDs of nodes with new exports
	merged uint64          // number of exports replaced by newer ones of the same node before they were processed
	parted []*node         // nodes that were removed and can no longer be called back
	ended  bool
	signal chan struct{} // has a value when there is something to do
	closed chan struct{}
}

func (m *mailbox) init() {
	m.signal = make(chan struct{}, 1)
	m.closed = make(chan struct{})
	m.dirty = map[string]bool{}
}

// post adds a job. It returns false if the mailbox is closed.
func (m *mailbox) post(job func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	m.jobs = append(m.jobs, job)
	m.wake()
	return true
}

// mark records that a node has new exports.
func (m *mailbox) mark(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		if m.dirty[id] {
			m.merged++
		}
		m.dirty[id] = true
		m.wake()
	}
}

// marked reports whether any node has new exports.
func (m *mailbox) marked() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.dirty) > 0
}

// coalesced returns the number of exports that were replaced by newer ones
// before they were processed.
func (m *mailbox) coalesced() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.merged
}

// part records that a removed node may stop. It returns false if the mailbox is
// closed. There are many of them when a foreach changes, so they are taken
// together.
func (m *mailbox) part(n *node) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	m.parted = append(m.parted, n)
	m.wake()
	return true
}

// takeParted takes all nodes that may stop.
func (m *mailbox) takeParted() (all []*node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, m.parted = m.parted, nil
	return all
}

// wakeWorker makes the worker check for work.
func (m *mailbox) wakeWorker() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake()
}

func (m *mailbox) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// next takes the first job, or returns nil if there is none.
func (m *mailbox) next() (job func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.jobs) > 0 {
		job, m.jobs[0] = m.jobs[0], nil
		m.jobs = m.jobs[1:]
	}
	return job
}

// takeDirty takes all marks.
func (m *mailbox) takeDirty() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.dirty {
		ids = append(ids, id)
	}
	clear(m.dirty)
	return ids
}

// takeMark takes the mark of one node and reports whether there was one.
func (m *mailbox) takeMark(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	marked := m.dirty[id]
	delete(m.dirty, id)
	return marked
}

// close discards the pending jobs and refuses further ones.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.ended, m.jobs, m.parted = true, nil, nil
		close(m.closed)
	}
}
