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
	// Args are the block's arguments by name, constants of the cache;
	// expressions see them. Secrets are left out.
	Args map[string]any
	// TTL is how long a handle lives that belongs to no single source series
	// (emitted records, the fifth and later results for one series) after its
	// last use; zero means 15 minutes.
	TTL time.Duration
	// MaxValues bounds what one MapLabel call site remembers, and what one
	// Column shares; zero means 10,000.
	MaxValues int
	// MaxMemos bounds the remembered expressions, the remembered label edits
	// and the remembered MapLabel sites, each; zero means 256. What does not
	// fit works unremembered, hence slower. Sweep forgets what is not in use.
	MaxMemos int
	// MaxMade is how many bytes of lines, labels and metadata one use of a window
	// may set and emit, beside 4 KiB for each of its rows and what its lines have;
	// zero means DefaultMade.
	MaxMade int64
	// Outputs is how many outputs records may be routed to, at most MaxOutputs.
	Outputs int
}

// Cache is what one version of a script with one set of arguments has
// learned: verdicts and derived handles by series, answers by distinct value,
// compiled expressions. It belongs to one node and is shared by its VMs.
//
// All methods are safe for concurrent use, but Close.
type Cache struct {
	opts   Options
	intern *batch.Interner

	series   batch.Memo[*batch.Series] // what the series hook decided: nil is dropped
	streams  batch.Memo[*batch.Stream] // and the stream hook
	variants batch.Memo[*variants]
	went     batch.Memo[went]

	roots batch.ColumnMemo[*root]

	ops    atomic.Uint64 // the last number of an op
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
		if !s.Released() { // a batch came late, of a series that had its ID before
			g.roots.Revoke()
		}
		releaseVariants(s, vs)
	}
	return g
}

// Check compiles an expression as DropWhere (Bool), Scale's and SetValue's
// first argument (Bool) or SetValue's second (Number) would, and remembers it.
// The error is an *expr.Error. It lets a script's constant expressions be
// checked when the script is loaded.
func (g *Cache) Check(src string, kind expr.Kind) error {
	if kind == expr.Number {
		_, err := g.number(src)
		return err
	}
	_, err := g.predicate(src, false)
	return err
}

// CheckLogs is Check for a predicate over log lines.
func (g *Cache) CheckLogs(src string) error {
	_, err := g.predicate(src, true)
	return err
}

// Sweep forgets what was remembered for series that were released, and
// releases the handles that were derived from them. It also forgets the
// expressions, label edits, sites and columns that were not used since the
// Sweep before: a label that is set to the hour would else leave a memo of all
// series for every hour. Call it now and then, such as once a minute.
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
	// Last, so that nothing above still leads to a handle that is released here.
	g.variants.Sweep(releaseVariants)
}

// Close releases every derived handle. The last VM that uses the cache
// must have returned; batches it made stay valid.
func (g *Cache) Close() {
	g.series.Clear(nil)
	g.streams.Clear(nil)
	g.went.Clear(nil)
	g.variants.Clear(releaseVariants)
	g.intern.Clear()
	g.roots.Revoke()
}

// use says when something that a Cache remembers was looked up last.
// Windows keep what they looked up until the next Sweep and then ask again.
type use struct{ sweep atomic.Uint64 }

func (u *use) touch(sweep uint64)     { u.sweep.Store(sweep) }
func (u *use) idle(sweep uint64) bool { return u.sweep.Load()+1 < sweep }

// used is what embeds use.
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

// hooked is what the hook that sees labels alone has decided.
func (g *Cache) hooked(logs bool) *batch.Memo[*batch.Series] {
	if logs {
		return &g.streams
	}
	return &g.series
}

// predicateKey is an expression over samples or over lines.
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

// remembered returns m[k], or the result of build, which is kept unless m, a map
// of g, is full: the first writer wins. Values that a script invents for each
// batch would otherwise fill the memory.
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
