package view

import (
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting/expr"
)

// Options configure a Generation. The zero value is ready to use.
type Options struct {
	// Args are the block's arguments by name, constants of the generation;
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
	// fit works unremembered, hence slower.
	MaxMemos int
}

// Generation is what one version of a script with one set of arguments has
// learned: verdicts and derived handles by series, answers by distinct value,
// compiled expressions. It belongs to one node and is shared by its VMs.
//
// All methods are safe for concurrent use, but Close.
type Generation struct {
	opts   Options
	intern *batch.Interner

	series   batch.Memo[*batch.Series] // what the series hook decided: nil is dropped
	variants batch.Memo[*variants]

	mu      sync.RWMutex
	preds   map[string]*predicate
	numbers map[string]*expr.Program
	edits   map[labelEdit]*editMemo
	sites   map[siteKey]*mapSite
	columns map[string]*Column

	collisions collisions
}

// NewGeneration returns an empty Generation.
func NewGeneration(o Options) *Generation {
	if o.TTL == 0 {
		o.TTL = 15 * time.Minute
	}
	if o.MaxValues == 0 {
		o.MaxValues = 10_000
	}
	if o.MaxMemos == 0 {
		o.MaxMemos = 256
	}
	g := &Generation{
		opts:    o,
		intern:  batch.NewInterner(o.TTL),
		preds:   map[string]*predicate{},
		numbers: map[string]*expr.Program{},
		edits:   map[labelEdit]*editMemo{},
		sites:   map[siteKey]*mapSite{},
		columns: map[string]*Column{},
	}
	g.variants.Evicted = releaseVariants
	return g
}

// Check compiles an expression as DropWhere (Bool), Scale's and SetValue's
// first argument (Bool) or SetValue's second (Number) would, and remembers it.
// The error is an *expr.Error. It lets a script's constant expressions be
// checked when the script is loaded.
func (g *Generation) Check(src string, kind expr.Kind) error {
	if kind == expr.Number {
		_, err := g.number(src)
		return err
	}
	_, err := g.predicate(src)
	return err
}

// Sweep forgets what was remembered for series that were released, and
// releases the handles that were derived from them. Call it now and then, such
// as once a minute.
func (g *Generation) Sweep() {
	g.series.Sweep(nil)
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

// Close releases every derived handle. The last VM that uses the generation
// must have returned; batches it made stay valid.
func (g *Generation) Close() {
	g.series.Clear(nil)
	g.variants.Clear(releaseVariants)
	g.intern.Clear()
}

func (g *Generation) predicate(src string) (*predicate, error) {
	g.mu.RLock()
	p, ok := g.preds[src]
	g.mu.RUnlock()
	if ok {
		return p, nil
	}
	prog, err := expr.Compile(src, expr.Bool, g.opts.Args)
	if err != nil {
		return nil, err
	}
	return remember(g, g.preds, src, &predicate{prog: prog}), nil
}

func (g *Generation) number(src string) (*expr.Program, error) {
	g.mu.RLock()
	p, ok := g.numbers[src]
	g.mu.RUnlock()
	if ok {
		return p, nil
	}
	p, err := expr.Compile(src, expr.Number, g.opts.Args)
	if err != nil {
		return nil, err
	}
	return remember(g, g.numbers, src, p), nil
}

func (g *Generation) edit(k labelEdit) *editMemo {
	g.mu.RLock()
	e, ok := g.edits[k]
	g.mu.RUnlock()
	if ok {
		return e
	}
	return remember(g, g.edits, k, &editMemo{})
}

func (g *Generation) site(k siteKey) *mapSite {
	g.mu.RLock()
	s, ok := g.sites[k]
	g.mu.RUnlock()
	if ok {
		return s
	}
	return remember(g, g.sites, k, newSite(g.opts.MaxValues))
}

// remember adds v to one of the maps unless it is full, and returns what is
// remembered: the first writer wins. What a script makes up anew in each batch
// would otherwise fill the memory.
func remember[K comparable, V any](g *Generation, m map[K]V, k K, v V) V {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old, ok := m[k]; ok {
		return old
	}
	if len(m) < g.opts.MaxMemos {
		m[k] = v
	}
	return v
}
