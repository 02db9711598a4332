package scripting

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// ProfilePeriod is the time between two samples of a Profile.
	ProfilePeriod = 10 * time.Millisecond
	// maxProfileDepth is the maximum number of frames in a sample. The outermost
	// ones are left out.
	maxProfileDepth = 64
	// maxProfileStacks is the maximum number of different stacks in a Profile.
	// Further stacks keep only their innermost frame.
	maxProfileStacks = 10_000
)

// Profile samples in which lines the VMs of a node spend their time. It is safe
// for concurrent use. A VM takes samples in calls with a Call.Profile; other
// calls cost nothing more. Time that a call waits for external events does not
// count.
type Profile struct {
	ticks atomic.Int64

	mu      sync.Mutex
	samples map[string]*ProfileSample // by stack
	stops   []func()
	ending  bool // there are no further stops
	ended   bool // there are no further samples
}

// ProfileSample is a stack with the number of samples in which it was found.
type ProfileSample struct {
	Stack []Frame // innermost first, not empty
	Count int64
}

// Ticks returns the number of samples that a VM should have taken since the
// profile began, if it has run without a break.
func (p *Profile) Ticks() int64 { return p.ticks.Load() }

// Collect takes samples for d, or until ctx ends, and returns them. It must be
// called once.
func (p *Profile) Collect(ctx context.Context, d time.Duration) []ProfileSample {
	tick := time.NewTicker(ProfilePeriod)
	defer tick.Stop()
	end := time.NewTimer(d)
	defer end.Stop()
	for running := true; running; {
		select {
		case <-tick.C:
			p.ticks.Add(1)
		case <-end.C:
			running = false
		case <-ctx.Done():
			running = false
		}
	}
	p.mu.Lock()
	p.ending = true
	stops := p.stops
	p.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	var out []ProfileSample
	for _, key := range slices.Sorted(maps.Keys(p.samples)) {
		out = append(out, *p.samples[key])
	}
	p.samples = nil // VMs may still refer to p
	return out
}

// OnEnd calls stop at the end of the profile, where stop may still add samples.
// It reports false if the profile has ended.
func (p *Profile) OnEnd(stop func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return false
	}
	p.stops = append(p.stops, stop)
	return true
}

// Add adds n samples with a stack, innermost frame first, which is copied. An
// empty stack is left out.
func (p *Profile) Add(n int64, stack []Frame) {
	if len(stack) == 0 {
		return
	}
	stack = stack[:min(len(stack), maxProfileDepth)]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	key := stackKey(stack)
	s := p.samples[key]
	if s == nil && len(p.samples) >= maxProfileStacks {
		stack = stack[:1]
		key = stackKey(stack)
		s = p.samples[key]
	}
	if s == nil {
		s = &ProfileSample{Stack: slices.Clone(stack)}
		if p.samples == nil {
			p.samples = map[string]*ProfileSample{}
		}
		p.samples[key] = s
	}
	s.Count += n
}

func stackKey(stack []Frame) string {
	var b strings.Builder
	for _, f := range stack {
		b.WriteString(f.File)
		b.WriteByte(0)
		b.WriteString(f.Func)
		b.WriteByte(0)
		b.WriteString(strconv.Itoa(f.Line))
		b.WriteByte(0)
	}
	return b.String()
}
