package node

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting/block"
)

// The shards of a batch that a canary gets a share of.
const (
	shardStable = iota
	shardCanary
	versionShards
)

// newDivision returns how batches are divided between the running version and a
// canary. Nobody who sends data can choose the version: see batch.Hash. In mode
// partition, records that meet the same VM meet the same version.
func newDivision(b *block.Script) *sharding {
	limit := uint64(b.Canary.Share * (1 << 53))
	return &sharding{shards: versionShards, shardOf: func(s *batch.Series) int {
		h := s.Hash()
		if b.Concurrency == block.ConcurrencyPartition {
			h = batch.Hash(appendValues(nil, s, b.By))
		}
		// Journals and queues shard by the low bits: the share is of each of theirs.
		if h>>11 < limit {
			return shardCanary
		}
		return shardStable
	}}
}

// passage is how the results of a batch leave.
type passage struct {
	to *router
	// number stands for the rules that made the results: see batch.Outputs. If only the
	// running version processed the batch, although there was a canary, it is the running
	// version's: the series that the canary made before end.
	number uint64
}

// processShares takes the shares of b that the running version and the canary get
// through the stages, one after the other, and joins what becomes of them, so that
// the next nodes see one batch. release must be called once it has been sent.
//
// b is admitted once: if another instance has taken over before, that gets b as a
// whole. The running version processes its share first, so that nothing has been
// processed by the canary if another instance takes over while on_error holds records.
// If one takes over while the second share is held, it gets that share alone, unless it
// has other outputs.
func (p *pipeline[B]) processShares(ctx context.Context, b B, t terms, cn *canary) (out result, as passage, release func(), err error) {
	as = passage{&cn.router, p.c.rules}
	var used []*instance
	release = func() {
		for _, g := range used {
			g.endCall()
		}
	}
	use := func(g *instance) {
		g.addCall()
		used = append(used, g)
	}
	if err := p.c.admission.enter(ctx); err != nil {
		return out, as, release, err
	}
	leave := sync.OnceFunc(p.c.admission.leave)
	defer leave()
	t.admitted = true
	s := p.signal.split(cn.division, b)
	outs := make([]result, len(s.parts))
	for i, part := range s.parts {
		if s.shards[i] == shardCanary && cn.entrance.tryEnter() {
			use(cn.inner.instance)
			canary := pipeline[B]{cn.inner, p.signal}
			outs[i], err = canary.processCounted(ctx, part, cn.inner.newTerms(ctx))
			cn.entrance.leave()
			cn.noteSeries(p.signal.column(part))
			cn.output.note(p.signal.payload(b), outs[i])
			cn.notify()
			if err == nil {
				as.number = cn.inner.rules
				continue
			}
			if !errors.Is(err, errReplaced) {
				return out, as, release, err
			}
			// The canary has ended while it held the records.
		}
		outs[i], err = p.processCounted(ctx, part, t)
		for c := p.c; i > 0 && errors.Is(err, errReplaced); {
			leave() // the next instance may wait for it
			next, failed := c.admission.successor(ctx)
			if failed != nil {
				return out, as, release, failed
			}
			if !next.sendsLike(p.c) {
				break
			}
			c, as = next, passage{&next.router, p.c.mem.newNumber()}
			use(next.instance)
			rest := pipeline[B]{next, p.signal}
			outs[i], err = rest.processCounted(ctx, part, next.newTerms(ctx))
			next.state.flush()
		}
		if err != nil {
			return out, as, release, err
		}
		cn.stableOutput.note(p.signal.payload(b), outs[i])
	}
	return p.join(b, s.parts, outs, s.join), as, release, nil
}

// sendsLike reports whether results of c can be joined with those of another instance.
func (c *Component) sendsLike(other *Component) bool {
	a, b := &c.router, &other.router
	_, transforms := c.kind.(*transform)
	return transforms && a.sends == b.sends && slices.Equal(a.sets, b.sets) && slices.Equal(a.outputs, b.outputs)
}
