package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Registration describes loki.source.file.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.source.file",
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return build(o, args.(*Arguments), previous)
		},
		Doc: component.Doc{
			Summary: "Follows files and forwards their lines, across rotations and restarts.",
		},
	}
}

// Component is the component of a loki.source.file node.
type Component struct {
	opts       component.Options
	metrics    *metrics
	changed    chan struct{} // has a value if the arguments changed
	acks       *pendingAcks
	owns       owners
	inflaters  inflaters
	openFile   func(path string) (*os.File, error)
	boot       func() string
	writersOf  func(*os.File) writers
	out        atomic.Pointer[flow.Output]
	held       atomic.Int64 // bytes of lines that were refused
	flying     atomic.Int64 // bytes of lines that are being sent
	rotated    atomic.Int64 // rotated files that are open
	maxRotated int64
	warned     warnings

	// Run sets these before it creates a follower.
	positions *positions
	start     startState

	claiming sync.Mutex

	mu     sync.Mutex
	args   *Arguments
	wanted map[string]bool         // IDs of the targets
	places func() map[owned]string // the files to which the targets lead; looked up at the first call
	info   []followerInfo
}

// warnings records which problems were logged, so that each is logged only once.
type warnings struct {
	starved    atomic.Bool // the process has too many files open
	crowded    atomic.Bool // more than maxRotated rotated files are open
	checkpoint atomic.Bool // the checkpoint cannot be written
}

// startState is the state that a component found when it started.
type startState struct {
	at      time.Time
	damaged bool        // some positions could not be read
	legacy  imports     // the positions of another collector
	unread  atomic.Bool // one of them is not an offset
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

func build(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{opts: o, changed: make(chan struct{}, 1), acks: newPendingAcks(), args: a, openFile: openFile, boot: bootID, writersOf: writersOf, maxRotated: maxRotated, owns: owners{by: map[owned]*follower{}}, inflaters: inflaters{open: map[*inflater]struct{}{}}}
	c.metrics = newMetrics()
	if before, ok := previous.(*Component); ok {
		c.metrics = before.metrics
	}
	if err := component.Register(o.Registerer, c.metrics.collectors()...); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	c.out.Store(flow.NewOutput(o.Stats, a.ForwardTo))
	return c, nil
}

// Update applies new arguments. Files that are still targets continue at their
// positions.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.mu.Lock()
	c.args = a
	c.mu.Unlock()
	c.out.Store(flow.NewOutput(c.opts.Stats, a.ForwardTo))
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Run follows the targets until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	c.start.at = c.opts.Clock.Now()
	if err := c.open(); err != nil {
		return err
	}
	failed := newScheduler(c).run(ctx)
	if err := c.positions.close(); err != nil {
		c.opts.Logger.Error("cannot save all positions", "err", err)
	}
	return failed
}

// open reads the positions.
func (c *Component) open() error {
	p, found, damage, err := openPositions(c.opts.DataPath, c.boot(), c.opts.Clock.Now, c.logProblem)
	if err != nil {
		return err
	}
	if damage != nil {
		c.start.damaged = true
		c.opts.Logger.Error("cannot read all positions", "err", damage, "on_positions_file_error", string(c.arguments().OnPositionsFileError))
	}
	if p.rewound {
		c.opts.Logger.Warn("the machine ended and not weir: lines of the last minutes are sent again, as receivers may have lost what had not reached the disk")
	}
	c.positions = p
	c.openLegacy(found)
	return nil
}

// openLegacy reads the positions file of another collector: the file named in the
// arguments, which is removed when its positions have been taken over, or, if
// weir has no positions yet, Alloy's file in the same directory.
func (c *Component) openLegacy(found bool) {
	paths := []string{c.arguments().LegacyPositionsFile}
	if !found {
		paths = append(paths, filepath.Join(c.opts.DataPath, "positions.yml"))
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		m, err := readImports(path)
		if err != nil {
			c.start.damaged = true
			c.opts.Logger.Error("cannot take over positions", "err", err)
			continue
		}
		if m != nil {
			c.start.legacy = m
			c.opts.Logger.Info("took over the positions of another collector", "path", path, "files", len(m))
			break
		}
	}
}

// dropLegacy removes the imported file when all initial targets have their own
// positions. A file that could not be read completely stays.
func (c *Component) dropLegacy() {
	named := c.arguments().LegacyPositionsFile
	if c.start.legacy == nil || named == "" || c.start.damaged || c.start.unread.Load() {
		return
	}
	c.positions.save()
	if err := os.Remove(named); err != nil && !os.IsNotExist(err) {
		c.opts.Logger.Warn("cannot remove the positions file that was taken over", "path", named, "err", err)
	}
}

// imported returns the offset of a target in the positions file of another
// collector.
func (c *Component) imported(t *target) (string, bool) { return c.start.legacy.offsetOf(t) }

// checkpoint saves the positions for a start after a restart of the machine.
func (c *Component) checkpoint() {
	err := c.positions.checkpoint()
	if err != nil {
		c.metrics.failures.Inc()
	}
	if c.warned.checkpoint.Swap(err != nil) == (err != nil) {
		return
	}
	if err == nil {
		c.opts.Logger.Info("the checkpoint of positions is written again")
		return
	}
	c.opts.Logger.Error("cannot sync the positions file to disk; weir tries again, and a crash of the machine would repeat more lines", "err", err)
}

func (c *Component) logProblem(err error) {
	if err == nil {
		c.opts.Logger.Info("the positions log is written again")
		return
	}
	c.metrics.failures.Inc()
	c.opts.Logger.Error("cannot save positions; lines are sent nevertheless, and after a crash again", "err", err)
}

func (c *Component) arguments() *Arguments {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.args
}

// isTarget reports whether a path belongs to a target with those labels.
func (c *Component) isTarget(path, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted[(&target{path: path, key: key}).id()]
}

// claim returns the positions of a target. If it has none, it gets those of the
// same path that belong to no target any more, because the labels of the target
// have changed.
func (c *Component) claim(t *target) []*position {
	c.claiming.Lock()
	defer c.claiming.Unlock()
	own := c.positions.ofPath(t.path, func(p *position) bool { return p.labels == t.key })
	if len(own) > 0 {
		return own
	}
	left := c.positions.ofPath(t.path, func(p *position) bool { return !c.owns.hasOwner(p) })
	key := ""
	for _, p := range left {
		if key == "" && !c.isTarget(p.path, p.labels) {
			key = p.labels
		}
		if p.labels == key && key != "" {
			c.positions.change(p, func(p *position) { p.labels = t.key })
			own = append(own, p)
		}
	}
	return own
}

// removeOldPositions removes the positions of files that are not targets and do
// not exist any more.
func (c *Component) removeOldPositions() {
	unused := func(p *position) bool {
		return len(p.open) == 0 && !c.isTarget(p.path, p.labels) && !c.owns.hasOwner(p)
	}
	ps := c.positions.selectPositions(unused)
	for i, v := range c.positions.copies(ps) {
		_, _, err := statPath(v.path)
		_, _, realErr := statPath(v.real)
		if err != nil && isMissing(err) && realErr != nil && isMissing(realErr) {
			// A target may have claimed it in the meantime.
			c.positions.removeIf(ps[i], func(p *position) bool { return unused(p) && p.path == v.path && p.real == v.real })
		}
	}
}

// positionOf returns the position for the content of lf, or nil.
func (c *Component) positionOf(key string, lf *logFile) *position {
	for _, p := range c.positions.ofFile(lf.id, func(p *position) bool { return p.labels == key }) {
		if ok, err := lf.hasMarks(p.head, p.tail, p.read); ok && err == nil && p.head.n > 0 {
			return p
		}
	}
	return nil
}

// followerInfo is what DebugInfo shows of a file.
type followerInfo struct {
	Path    string `json:"path"`
	Labels  string `json:"labels"`
	File    string `json:"file,omitempty"` // the target of symbolic links; for a rotated file, its current path if it is known
	Offset  int64  `json:"offset"`
	Size    int64  `json:"size"`
	Acked   int64  `json:"acknowledged_offset"`
	Rotated bool   `json:"rotated,omitempty"`
	Closed  bool   `json:"closed,omitempty"` // true if it is closed until it is read, because too many rotated files are open

	Refused      bool      `json:"refused,omitempty"` // true if a batch was refused; nothing else is read until it is accepted
	RefusedSince time.Time `json:"refused_since,omitzero"`
	Refusal      string    `json:"refusal,omitempty"` // which receiver refused it, and why

	Error string `json:"error,omitempty"`
}

// DebugInfo returns how far each file was read.
func (c *Component) DebugInfo() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return struct {
		Files []followerInfo `json:"files"`
	}{c.info}
}
