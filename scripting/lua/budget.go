package lua

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/scripting"
)

// budget bounds one call into a VM. It is the VM's context.Context: gopher-lua
// asks Done before every instruction, and a nil channel costs next to nothing,
// so Done is the instruction hook. A timer or a context per call would cost
// more than many calls take.
//
// Once tripped it stays so: pcall catches the error, and the next instruction
// raises it again. The VM is thrown away afterwards.
type budget struct {
	instr   meter
	clock   stopwatch
	strings allowance // bytes of strings that the call may still create
	threads int       // coroutines that the call may still create
	heap    heap
	held    func(limit int) int // what the VM holds
	tripped error               // why the call was stopped, nil while it may go on
	stop    atomic.Bool         // set from outside to end the call
	sampler *sampler            // nil unless the call is profiled
}

// meter counts instructions. left is counted down to 0, where the other limits
// are checked, and filled up again.
type meter struct {
	left  int64 // until the next check
	size  int64 // what left was filled up to: slice, or less while memory grows fast
	spent int64 // by this call, before left was filled up
	max   int64 // that the call may run
}

// refill fills left up to size.
func (m *meter) refill(size int64) {
	m.spent += m.size - m.left
	m.size, m.left = size, size
}

// ran returns how many instructions the call has run.
func (m *meter) ran() int64 { return m.spent + m.size - m.left }

// stopwatch measures the time that a script takes. It stands still while the call
// waits for the outside.
type stopwatch struct {
	started time.Time
	looked  time.Time     // when the clock was last read
	used    time.Duration // by the script, until looked
	gap     time.Duration // that library calls since then may have taken
	limit   time.Duration // of used
	setting string        // the part of a message that names the setting of limit
}

// tick reads the clock and returns the time since it was read last.
func (w *stopwatch) tick(now time.Time) time.Duration {
	passed := now.Sub(w.looked)
	w.used += min(passed, maxGap+w.gap)
	w.looked, w.gap = now, 0
	return passed
}

// isOver reports whether the script or the whole call took too long.
func (w *stopwatch) isOver() bool {
	return w.used > w.limit || w.looked.Sub(w.started) > wallFactor*w.limit
}

// skip leaves out the time since the clock was read last.
func (w *stopwatch) skip(now time.Time) {
	w.started = w.started.Add(now.Sub(w.looked))
	w.looked = now
}

// allowance is an amount that a call may use up.
type allowance struct{ left, total int64 }

// spend subtracts n and reports whether that much was left.
func (a *allowance) spend(n int64) bool {
	a.left -= n
	return a.left >= 0
}

const (
	// slice is how many instructions run between looks at the clock, which is
	// about 50 ns a look; one that fills up an array takes a millisecond.
	slice = 256
	// slowSlice is the time after which a slice is followed by short ones: it
	// may have filled up arrays, each a megabyte, and is looked at in time.
	slowSlice = 500 * time.Microsecond
	// maxGap is the most that counts between two looks. A slice takes some
	// 10 µs, with a library call in it rarely a millisecond; what is longer is
	// time in which the machine did something else, and a script is not to
	// blame for a busy machine.
	maxGap = 2 * time.Millisecond
	// wallFactor bounds the whole call all the same: library calls are bounded
	// in what they are given, but many long ones would count too little.
	wallFactor = 10
	// instructionsPerMicro turns the time limit into an instruction limit that
	// a stalled clock cannot lift; an empty loop runs up to 200 on an idle core,
	// and must meet the time limit first.
	instructionsPerMicro = 1000
	// stringBytes is what a call may make of strings, plus stringBytesPerRecord
	// for each record: doubling a string needs no instructions to speak of.
	stringBytes          = 64 << 20
	stringBytesPerRecord = 4 << 10
	// maxString is how long a single string may become.
	maxString = 8 << 20
	// maxThreads is how many coroutines a call may create.
	maxThreads = 1000
	// usualTime is the limit of time that these are for.
	usualTime = 200 * time.Millisecond
	// nativeGap and nativeRate are what a function of the host may take, which
	// matches patterns or makes labels: for a call, and in bytes a second of the
	// strings it is given.
	nativeGap  = 5 * time.Millisecond
	nativeRate = 25 << 20
	// copyRate is how fast the slower library functions are, in bytes a second.
	copyRate = 250 << 20
)

// errStopped is the end of a call that somebody asked to end.
var errStopped = fmt.Errorf("stopped: %w", context.Canceled)

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// start begins a call.
func (b *budget) start(limit time.Duration, records int) {
	now := time.Now()
	heap, held, sampler := b.heap, b.held, b.sampler
	long := max(1, int64(limit/usualTime)) // a call that may run longer may create more
	bytes := long*stringBytes + int64(records)*stringBytesPerRecord
	*b = budget{
		instr:   meter{left: slice, size: slice, max: limit.Microseconds() * instructionsPerMicro},
		clock:   stopwatch{started: now, looked: now, limit: limit},
		strings: allowance{bytes, bytes},
		threads: int(long) * maxThreads,
		heap:    heap,
		held:    held,
		sampler: sampler,
	}
	if sampler != nil {
		b.instr.left, b.instr.size = 1, sampler.start(slice)
	}
}

// Done returns nil while the call may go on.
func (b *budget) Done() <-chan struct{} {
	b.instr.left--
	if b.instr.left > 0 {
		return nil
	}
	if b.sampler != nil && b.tripped == nil && b.sampler.step() {
		b.instr.refill(1)
		return nil
	}
	if b.checkLimits() != nil {
		return closed
	}
	return nil
}

// Err says why the call was stopped.
func (b *budget) Err() error { return b.tripped }

// Deadline and Value are there for context.Context.
func (b *budget) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns nil.
func (b *budget) Value(any) any { return nil }

// checkLimits checks all limits but that of strings and coroutines.
func (b *budget) checkLimits() error {
	if b.tripped != nil {
		b.instr.left = 0
		return b.tripped
	}
	now := time.Now()
	size := int64(slice)
	if b.clock.tick(now) > slowSlice {
		size = slice / 16
	}
	if b.sampler != nil {
		size = b.sampler.start(size)
	}
	b.instr.refill(size)
	if b.stop.Load() {
		return b.stopCall(errStopped)
	}
	if b.clock.isOver() {
		return b.stopCall(fmt.Errorf("%w: the call ran longer than %s%s", scripting.ErrTime, b.clock.limit, b.clock.setting))
	}
	if b.instr.spent > b.instr.max {
		return b.stopCall(fmt.Errorf("%w: the call ran more than %d instructions%s", scripting.ErrLimit, b.instr.max, b.clock.setting))
	}
	if err := b.heap.check(now, b.held); err != nil {
		return b.stopCall(err)
	}
	return nil
}

// native allows for the time of a function of the host that works on so many
// bytes: more of the time until the next check is the script's.
func (b *budget) native(bytes int) {
	b.clock.gap += nativeGap + time.Duration(bytes)*time.Second/nativeRate
}

// check is for long functions of the host. Its error means that the call was
// stopped.
func (b *budget) check() error {
	b.native(0)
	return b.checkLimits()
}

// pause stops the time of the call, which waits for the outside until resume.
func (b *budget) pause() error { return b.checkLimits() }

func (b *budget) resume() {
	b.clock.skip(time.Now())
	if b.sampler != nil {
		b.sampler.skip()
	}
}

// aside calls fn with limits of its own, which do not affect those of the call.
func (b *budget) aside(limit time.Duration, fn func()) {
	instr, clock, strings, threads, tripped := b.instr, b.clock, b.strings, b.threads, b.tripped
	now := time.Now()
	b.instr = meter{left: slice, size: slice, max: limit.Microseconds() * instructionsPerMicro}
	b.clock = stopwatch{started: now, looked: now, limit: limit}
	b.strings, b.threads = allowance{stringBytes, stringBytes}, maxThreads
	fn()
	b.instr, b.clock, b.strings, b.threads, b.tripped = instr, clock, strings, threads, tripped
	b.resume()
}

func (b *budget) stopCall(err error) error {
	if b.tripped == nil {
		b.tripped = err
	}
	b.instr.left = 0
	return b.tripped
}

// charge takes n instructions for work that a library function does.
func (b *budget) charge(n int64) error {
	b.instr.left -= n
	if b.instr.left > 0 {
		return nil
	}
	return b.checkLimits()
}

// chargeString takes n bytes for a string that is about to be created.
func (b *budget) chargeString(n int64) error {
	if n > maxString {
		return fmt.Errorf("cannot make a string of %d bytes: the limit is %d", n, maxString)
	}
	if !b.strings.spend(n) {
		return b.stopCall(fmt.Errorf("%w: the call made more than %d bytes of strings", scripting.ErrLimit, b.strings.total))
	}
	b.clock.gap += time.Duration(n) * time.Second / copyRate
	// A copied byte is about as much work as a hundredth of an instruction.
	return b.charge(n >> 7)
}

var _ context.Context = (*budget)(nil)
