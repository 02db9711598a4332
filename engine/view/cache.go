package view

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
)

// Options configure a Cache. The zero value is ready to use.
type Options struct {
	// Args are the block's arguments by name. Expressions can read them. They are
	// constant and do not contain secrets.
	Args map[string]any
	// TTL is how long a handle without a single source series lives after its last
	// use; zero means 15 minutes. These are the handles of emitted records, and of
	// the fifth and later results for one series.
	TTL time.Duration
	// MaxValues is the maximum number of values that one MapLabel call site caches
	// and that one Column shares; zero means 10,000.
	MaxValues int
	// MaxMemos is the maximum number of cached expressions, of cached label edits
	// and of cached MapLabel sites; zero means 256. Anything beyond it works
	// without caching and is therefore slower. Sweep removes unused entries.
	MaxMemos int
	// MaxMade is the maximum size, in bytes, of the lines, labels and metadata
	// that a script may set and emit in one use of a window; zero means
	// DefaultMade. The window adds 4 KiB per row, and the size of its lines.
	MaxMade int64
	// Outputs is the number of outputs that records may be routed to, at most
	// MaxOutputs.
	Outputs int
}

// Cache contains the results of one version of a script with one set of
// arguments: decisions and derived handles by series, results by distinct
// value, compiled expressions. It belongs to one node and is shared by its VMs.
//
// All methods except Close are safe for concurrent use.
type Cache struct {
	opts   Options
	intern *batch.Interner

	series   batch.Memo[*batch.Series] // the decisions of the series hook: nil means dropped
	streams  batch.Memo[*batch.Stream] // the decisions of the stream hook
	variants batch.Memo[*variants]
	went     batch.Memo[went]

	roots batch.ColumnMemo[*root]

	ops    atomic.Uint64 // the last operation number that was assigned
	sweeps atomic.Uint64

	mu      sync.RWMutex
	preds   map[predicateKey]*predicate
	numbers map[string]*number
	edits   map[labelEdit]*editMemo
	sites   map[siteKey]*mapSite
	columns map[string]*Column

	collisions collisions
}

// NewCache returns an empty Cache.
func NewCache(o Options) *Cache {
	if o.TTL == 0 {
		o.TTL = 15 * time.Minute
	}
	if o.MaxValues == 0 {
		o.MaxValues = 10_000
	}
	if o.MaxMemos == 0 {
		o.MaxMemos = 256
	}
	if o.MaxMade == 0 {
		o.MaxMade = DefaultMade
	}
	g := &Cache{
		opts:    o,
		intern:  batch.NewInterner(o.TTL),
		preds:   map[predicateKey]*predicate{},
		numbers: map[string]*number{},
		edits:   map[labelEdit]*editMemo{},
		sites:   map[siteKey]*mapSite{},
		columns: map[string]*Column{},
	}
	g.ops.Store(seriesOp.number)
	g.variants.Evicted = func(s *batch.Series, vs *variants) {
		if !s.Released() { // a late batch contains a series that previously had this ID
			g.roots.Revoke()
		}
		releaseVariants(s, vs)
	}
	return g
}

// Check compiles an expression as DropWhere (Bool), as the first argument of
// Scale and SetValue (Bool) or as the second argument of SetValue (Number), and
// caches it. The error is an *expr.Error. Use it to check a script's constant
// expressions when the script is loaded.
func (g *Cache) Check(src string, kind expr.Kind) error {
	if kind == expr.Number {
		_, err := g.number(src)
		return err
	}
	_, err := g.predicate(src, false)
	return err
}

// CheckLogs is like Check, for a predicate over log lines.
func (g *Cache) CheckLogs(src string) error {
	_, err := g.predicate(src, true)
	return err
}

// Sweep removes the cached results of released series, and releases the handles
// that were derived from them. It also removes the expressions, label edits,
// sites and columns that were not used since the previous Sweep: otherwise, a
// label that is set to the hour would leave a memo of all series for every
// hour. Call it regularly, for example once per minute.
func (g *Cache) Sweep() {
	g.roots.Sweep()
	g.series.Sweep(nil)
	g.streams.Sweep(nil)
	g.went.Sweep(nil)
	g.mu.Lock()
	now := g.sweeps.Add(1)
	expire(g.preds, now)
	expire(g.numbers, now)
	expire(g.edits, now)
	expire(g.sites, now)
	expire(g.columns, now)
	g.mu.Unlock()
	g.mu.RLock()
	for _, p := range g.preds {
		p.memo.Sweep(nil)
	}
	for _, e := range g.edits {
		e.memo.Sweep(nil)
	}
	for _, s := range g.sites {
		s.memo.Sweep(nil)
	}
	for _, c := range g.columns {
		c.memo.Sweep(nil)
	}
	g.mu.RUnlock()
	// Last, so that nothing above still refers to a handle that is released here.
	g.variants.Sweep(releaseVariants)
}

// Close releases every derived handle. The last VM that uses the cache must
// have returned. Batches that were created with the cache stay valid.
func (g *Cache) Close() {
	g.series.Clear(nil)
	g.streams.Clear(nil)
	g.went.Clear(nil)
	g.variants.Clear(releaseVariants)
	g.intern.Clear()
	g.roots.Revoke()
}

// use records when a cached object was last looked up. Windows keep the objects
// that they looked up until the next Sweep and then look them up again.
type use struct{ sweep atomic.Uint64 }

func (u *use) touch(sweep uint64)     { u.sweep.Store(sweep) }
func (u *use) idle(sweep uint64) bool { return u.sweep.Load()+1 < sweep }

// used is implemented by types that embed use.
type used interface {
	touch(sweep uint64)
	idle(sweep uint64) bool
}

func expire[K comparable, V used](m map[K]V, sweep uint64) {
	for k, v := range m {
		if v.idle(sweep) {
			delete(m, k)
		}
	}
}

// hooked returns the decisions of the series hook or the stream hook.
func (g *Cache) hooked(logs bool) *batch.Memo[*batch.Series] {
	if logs {
		return &g.streams
	}
	return &g.series
}

// predicateKey is an expression over samples or over log lines.
type predicateKey struct {
	src  string
	logs bool
}

func (g *Cache) predicate(src string, logs bool) (*predicate, error) {
	return remembered(g, g.preds, predicateKey{src, logs}, func() (*predicate, error) {
		compile := expr.Compile
		if logs {
			compile = expr.CompileLogs
		}
		prog, err := compile(src, expr.Bool, g.opts.Args)
		return &predicate{prog: prog, op: g.ops.Add(1)}, err
	})
}

func (g *Cache) number(src string) (*number, error) {
	return remembered(g, g.numbers, src, func() (*number, error) {
		prog, err := expr.Compile(src, expr.Number, g.opts.Args)
		return &number{prog: prog}, err
	})
}

func (g *Cache) edit(k labelEdit) *editMemo {
	e, _ := remembered(g, g.edits, k, func() (*editMemo, error) { return &editMemo{op: g.ops.Add(1)}, nil })
	return e
}

func (g *Cache) site(k siteKey) *mapSite {
	s, _ := remembered(g, g.sites, k, func() (*mapSite, error) { return newSite(g.ops.Add(1), g.opts.MaxValues), nil })
	return s
}

// remembered returns m[k], or the result of build, which is stored unless m, a
// map of g, is full. If there are concurrent writers, the first one wins. The
// limit keeps a script that creates new keys for each batch from filling the
// memory.
func remembered[K comparable, V used](g *Cache, m map[K]V, k K, build func() (V, error)) (V, error) {
	g.mu.RLock()
	v, ok := m[k]
	g.mu.RUnlock()
	if ok {
		v.touch(g.sweeps.Load())
		return v, nil
	}
	v, err := build()
	if err != nil {
		return v, err
	}
	v.touch(g.sweeps.Load())
	g.mu.Lock()
	defer g.mu.Unlock()
	if old, ok := m[k]; ok {
		return old, nil
	}
	if len(m) < g.opts.MaxMemos {
		m[k] = v
	}
	return v, nil
}
