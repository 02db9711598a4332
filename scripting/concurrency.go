package scripting

import "hash/maphash"

// openPools makes the pools of the block's mode.
func (c *Component) openPools(newWorker func() (*worker, error)) {
	c.pool = newPool(workers(), maxWaiting, newWorker)
	switch c.block.Concurrency {
	case ConcurrencySingle:
		c.pool = newPool(1, 0, newWorker)
	case ConcurrencyParallel:
		c.sharding = &sharding{}
	case ConcurrencyPartition:
		c.sharding = &sharding{by: c.block.By, shards: workers(), seed: maphash.MakeSeed()}
		c.shards = make([]*pool, workers())
		for i := range c.shards {
			c.shards[i] = newPool(1, 0, newWorker)
		}
	}
	c.pools = append(c.shards, c.pool)
}

// vms is how many VMs there are.
func (c *Component) vms() (n int64) {
	for _, p := range c.pools {
		n += p.count.Load()
	}
	return n
}
