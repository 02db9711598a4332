package tap

import (
	"context"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
)

const (
	// maxFollowed is the most rows of observations that a Follower keeps.
	maxFollowed = 500_000
	// settling is how long after Begin a call may still be running that began before it.
	settling = time.Second
	// maxDepth and maxSteps limit one path.
	maxDepth = 64
	maxSteps = 200
)

// Followed is a node that a Follower observes.
type Followed struct {
	ID, Component, Position string
	SendsTo                 []string
	// Receives is true if other nodes send to the node.
	Receives bool
	// Explainer is the component that runs, or nil if it cannot explain.
	Explainer component.Explainer
}

// Follower finds the paths of records through several nodes. A record that a node
// sends and the same record at the next node are columns with the same memory, so the
// edges are exact. Inside a node, it pairs records as a comparison does.
//
// A Follower is not safe for concurrent use.
type Follower struct {
	where   *Printer // for matches and masks
	begun   time.Time
	nodes   map[string]Followed
	order   []*observation
	sent    map[column][]*observation // by what a node sent
	arrived map[column][]*observation // by what arrived at a node
	rows    int

	// Examined is the number of records that were compared with the expression, and
	// Missed the number of those that were left out because there were too many.
	Examined, Missed uint64
}

// column identifies a batch by its memory.
type column struct {
	series **batch.Series
	n      int
}

// observation is one call of a node, or one batch that it sent outside of a call.
type observation struct {
	node    string
	t       flow.Tapped
	in, out []row
	to      []int // the output row of an input row, or -1; nil before it is known
	from    []int // the input row of an output row, or -1
	inDone  map[int]bool
	outDone map[int]bool
	looked  bool
}

// NewFollower returns a Follower of the records that where selects.
func NewFollower(where *expr.Programs) *Follower {
	return &Follower{
		where: &Printer{o: Options{Side: flow.Calls, Format: "json", Where: where}, masks: newMasks(nil)},
		sent:  map[column][]*observation{}, arrived: map[column][]*observation{},
	}
}

// Mask replaces the secrets that are masked in later paths.
func (f *Follower) Mask(secrets []string) { f.where.Mask(secrets) }

// Nodes replaces the nodes.
func (f *Follower) Nodes(nodes map[string]Followed) { f.nodes = nodes }

// Begin tells from when on all nodes are observed. A record that was on its way then has
// no path: some of its nodes did not observe it.
func (f *Follower) Begin(t time.Time) { f.begun = t }

// onItsWay reports whether the path that begins with o may have begun before all nodes
// were observed.
func (f *Follower) onItsWay(o *observation) bool {
	began := o.t.Time
	if !o.t.Began.IsZero() {
		began = o.t.Began
	}
	if f.nodes[o.node].Receives {
		return began.Before(f.begun.Add(settling))
	}
	return began.Before(f.begun)
}

// Failure returns the first error of the expression since the last call, or nil.
func (f *Follower) Failure() (err error) {
	err, f.where.failure = f.where.failure, nil
	return err
}

// Add adds what a tap with the side Calls observed at a node.
func (f *Follower) Add(node string, queue []flow.Tapped, missed uint64) {
	f.Missed += missed
	for _, t := range queue {
		n := t.In.Len() + t.Out.Len()
		if f.rows > 0 && f.rows+n > maxFollowed {
			f.Missed += uint64(n)
			continue
		}
		f.rows += n
		o := &observation{node: node, t: t, in: slices.Collect(rowsOf(t.In)), out: slices.Collect(rowsOf(t.Out)),
			inDone: map[int]bool{}, outDone: map[int]bool{}}
		f.order = append(f.order, o)
		for _, c := range columns(t.In) {
			f.arrived[c] = append(f.arrived[c], o)
		}
		for _, c := range columns(t.Out) {
			f.sent[c] = append(f.sent[c], o)
		}
	}
}

func columns(b flow.Batches) (out []column) {
	for r := range rowsOf(b) {
		if r.i == 0 {
			out = append(out, r.column())
		}
	}
	return out
}

func (r row) column() column {
	if r.l != nil {
		return column{&r.l.Stream[0], len(r.l.Stream)}
	}
	return column{&r.m.Series[0], len(r.m.Series)}
}

// Forget removes the observations before a time.
func (f *Follower) Forget(before time.Time) {
	keep := func(o *observation) bool { return !o.t.Time.Before(before) }
	for _, o := range f.order {
		if keep(o) {
			continue
		}
		f.rows -= len(o.in) + len(o.out)
		for _, c := range columns(o.t.In) {
			remove(f.arrived, c, o)
		}
		for _, c := range columns(o.t.Out) {
			remove(f.sent, c, o)
		}
	}
	f.order = slices.DeleteFunc(f.order, func(o *observation) bool { return !keep(o) })
}

func remove(from map[column][]*observation, c column, o *observation) {
	left := slices.DeleteFunc(from[c], func(x *observation) bool { return x == o })
	if from[c] = left; len(left) == 0 {
		delete(from, c)
	}
}

// Paths returns at most limit paths of records that match at any node, as far as
// nodes observed them before a time. Each record is returned once. Staleness markers,
// which nodes add when a series ends, have no paths of their own.
func (f *Follower) Paths(ctx context.Context, before time.Time, limit int) (paths []Path) {
	for _, o := range f.order {
		if o.looked || !o.t.Time.Before(before) {
			continue
		}
		o.looked = true
		f.Examined += uint64(max(len(o.in), len(o.out)))
		for i, r := range o.in {
			if len(paths) < limit && !o.inDone[i] && !r.stale() && f.where.matches(r) {
				if from, in, out := f.root(o, i, -1); !f.onItsWay(from) {
					paths = append(paths, f.path(ctx, from, in, out))
				}
			}
		}
		for j, r := range o.out {
			if len(paths) < limit && !o.outDone[j] && !r.stale() && f.where.matches(r) {
				o.pair()
				if from, in, out := f.root(o, o.from[j], j); !f.onItsWay(from) {
					paths = append(paths, f.path(ctx, from, in, out))
				}
			}
		}
	}
	return paths
}

// pair finds out which output comes from which input.
func (o *observation) pair() {
	if o.to != nil {
		return
	}
	o.to, o.from = make([]int, len(o.in)), make([]int, len(o.out))
	for i := range o.to {
		o.to[i] = -1
	}
	for j := range o.from {
		o.from[j] = -1
	}
	for _, p := range match(o.in, o.out) {
		if p.in >= 0 {
			o.to[p.in] = p.out
		}
		if p.out >= 0 {
			o.from[p.out] = p.in
		}
	}
}

// root returns where the path of a row begins: the first observation above o. One of
// the rows is -1 if the node added it or its output is not known yet.
func (f *Follower) root(o *observation, in, out int) (*observation, int, int) {
	for range maxDepth {
		if in < 0 {
			break
		}
		above, j := f.sender(o, o.in[in])
		if above == nil {
			break
		}
		above.pair()
		o, in, out = above, above.from[j], j
	}
	return o, in, out
}

// sender returns the observation that sent a row to the node of o, and its number
// there, or nil.
func (f *Follower) sender(o *observation, r row) (*observation, int) {
	for _, above := range f.sent[r.column()] {
		if above != o && slices.Contains(f.nodes[above.node].SendsTo, o.node) {
			for j, x := range above.out {
				if x.i == r.i && x.column() == r.column() {
					return above, j
				}
			}
		}
	}
	return nil, 0
}

// receivers returns the observations at which a row that o sent arrived, and its
// number there.
func (f *Follower) receivers(o *observation, r row) (at []*observation, rows []int) {
	seen := map[string]bool{}
	for _, below := range f.arrived[r.column()] {
		if below == o || seen[below.node] || !slices.Contains(f.nodes[o.node].SendsTo, below.node) {
			continue
		}
		for i, x := range below.in {
			if x.i == r.i && x.column() == r.column() {
				at, rows = append(at, below), append(rows, i)
				seen[below.node] = true
				break
			}
		}
	}
	return at, rows
}
