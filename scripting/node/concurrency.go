package node

import "github.com/weir-run/weir/scripting/block"

// pools are the VMs of an instance.
type pools struct {
	shared *pool   // for everything that may run on any VM
	shards []*pool // of mode partition: one VM each
	all    []*pool
	vms    func(n int64) // called with the number of VMs
	broken func()        // called when a VM was discarded
}

// openPools creates the pools for the block's mode, and sets how batches are
// split.
func (c *Component) openPools(newWorker func() (*worker, error)) {
	m := c.mem.metrics
	p := pools{shared: newPool(workers(), maxWaiting, newWorker), vms: func(n int64) { m.vms.Set(float64(n)) }, broken: m.discarded.Inc}
	switch c.block.Concurrency {
	case block.ConcurrencySingle:
		p.shared = newPool(1, 0, newWorker)
	case block.ConcurrencyParallel:
		c.sharding = &sharding{}
	case block.ConcurrencyPartition:
		c.sharding = partitionBy(c.block.By, workers())
		for range workers() {
			p.shards = append(p.shards, newPool(1, 0, newWorker))
		}
	}
	p.all = append(p.shards, p.shared)
	c.pools = p
}

// of returns the pool of a shard.
func (ps *pools) of(shard int) *pool {
	if ps.shards == nil {
		return ps.shared
	}
	return ps.shards[shard%len(ps.shards)]
}

// add adds a pool of one VM that is used for a long time.
func (ps *pools) add() *pool {
	p := newPool(1, 0, ps.shared.make)
	ps.all = append(ps.all, p)
	return p
}

// put gives a worker back to its pool.
func (ps *pools) put(w *worker) {
	if w.pool.put(w) {
		ps.broken()
	}
	ps.vms(ps.count())
}

// count returns the number of VMs.
func (ps *pools) count() (n int64) {
	for _, p := range ps.all {
		n += p.count.Load()
	}
	return n
}

// shrink discards VMs that replaced waiting VMs.
func (ps *pools) shrink() {
	for _, p := range ps.all {
		p.shrink()
	}
}
