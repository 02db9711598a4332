package file

import (
	"strings"
	"sync"

	"github.com/weir-run/weir/engine/glob"
)

// resolveState is the state of looking up the targets of the arguments.
type resolveState uint8

const (
	notResolving resolveState = iota
	resolving
	outdated // resolving, and the arguments have changed since
)

// resolution is the result of looking up the targets of arguments.
type resolution struct {
	args     *Arguments
	targets  []target
	troubles []string
	look     *glob.Look
}

// resolve starts to look up the targets.
func (s *scheduler) resolve() {
	if s.resolving != notResolving {
		s.resolving = outdated
		return
	}
	s.resolving = resolving
	now := s.c.opts.Clock.Now()
	s.done.resolved = now
	s.wg.Go(func() {
		a := s.c.arguments()
		ts, troubles, look := resolveTargets(a, s.c.opts.StoragePath, now)
		s.resolved <- resolution{a, ts, troubles, look}
	})
}

// reconcile creates and removes followers according to the targets.
func (s *scheduler) reconcile(r resolution) {
	again := s.resolving == outdated
	s.resolving = notResolving
	set := newSettings(r.args)
	same := s.set != nil && *set == *s.set
	if same {
		set = s.set
	}
	s.set, s.status.troubles = set, strings.Join(r.troubles, "; ")
	if own := r.look.Own(); own != "" && !s.ownLogged {
		s.ownLogged = true
		s.c.opts.Logger.Info("targets lead to files in weir's storage directory; they are not read", "file", own)
	}
	want := make(map[string]bool, len(r.targets))
	for i := range r.targets {
		want[r.targets[i].id()] = true
	}
	if r.args == s.matched { // files of a file system that does not respond are not considered removed
		for id, f := range s.all {
			if !want[id] && r.look.Hung(f.target.path) {
				want[id] = true
			}
		}
	}
	s.matched = r.args
	s.c.mu.Lock()
	s.c.wanted, s.c.places = want, sync.OnceValue(func() map[owned]string { return placesOf(want) })
	s.c.mu.Unlock()

	left := map[string][]*follower{} // by path
	for id, f := range s.all {
		if !want[id] {
			left[f.target.path] = append(left[f.target.path], f)
			delete(s.all, id)
		}
	}
	returning := make(map[string]*follower, len(s.ended))
	for f := range s.ended {
		returning[f.target.id()] = f
	}
	now := s.c.opts.Clock.Now()
	for _, t := range r.targets {
		if f := s.all[t.id()]; f != nil {
			if f.set != set {
				f.slot.retarget = &t
			}
		} else if fs := left[t.path]; len(fs) > 0 {
			f, left[t.path] = fs[0], fs[1:]
			f.slot.retarget = &t
			s.all[t.id()] = f
		} else if f := returning[t.id()]; f != nil {
			delete(s.ended, f)
			s.all[t.id()] = f
		} else {
			f := newFollower(s.c, set, t)
			f.slot.due = now
			s.all[t.id()] = f
			s.enqueue(f)
			continue
		}
		s.adjust(s.all[t.id()])
	}
	for _, fs := range left {
		for _, f := range fs {
			if !f.slot.isRunning() { // else it is adjusted after its turn
				f.slot.pause, f.slot.due = set.minPause, now
			}
			s.ended[f] = struct{}{}
			s.adjust(f)
		}
	}
	if again {
		s.resolve()
	}
}

// adjust applies a pending change of target to a follower that no worker owns.
func (s *scheduler) adjust(f *follower) {
	if f.slot.isRunning() {
		return // adjusted after its turn
	}
	if f.slot.retarget != nil {
		f.applyTarget(s.set, *f.slot.retarget)
		f.slot.retarget = nil
	}
	f.removed = s.hasLeft(f)
	s.enqueue(f)
}

// applyTarget makes the follower follow another target with the same path, or use
// other settings. It continues at its position.
func (f *follower) applyTarget(set *settings, t target) {
	old := f.set
	f.set = set
	if t.key != f.target.key {
		for _, lf := range f.files.all {
			f.c.owns.release(f, lf.id)
		}
		f.c.positions.rekey(f.target.path, f.target.key, t.key)
		f.target = t
		for _, lf := range f.files.all {
			f.c.owns.claimFile(f, lf.id)
		}
		f.sender.setTarget(&f.target)
	}
	if old.encoding == set.encoding && old.format == set.format {
		return
	}
	for _, lf := range f.files.all {
		lf.text.declared, lf.text.actual, lf.cursor.scanned = set.coding, nil, 0
	}
	if old.format != set.format {
		// Offsets count decompressed bytes, so the file at the path is read from its start.
		for len(f.files.all) > 0 {
			f.finishFile(0)
		}
	}
}
