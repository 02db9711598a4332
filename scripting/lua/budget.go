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
	left    int64 // instructions until slow looks again
	size    int64 // what left is filled up to: slice, or less while memory grows fast
	spent   int64 // of this call, before left was filled
	max     int64
	started time.Time
	looked  time.Time     // when look last read the clock
	used    time.Duration // script time of this call, until looked
	limit   time.Duration // of used
	bytes   int64         // of strings the call may still make
	allowed int64
	threads int    // coroutines the call may still make
	setting string // what a message says of where limit was set
	tripped error
	stop    atomic.Bool   // set from outside: the call is to end
	gap     time.Duration // that library calls since the last look may have taken

	heap heap
	held func(limit int) int // what the VM holds
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
	heap, held := b.heap, b.held
	*b = budget{
		left:    slice,
		size:    slice,
		max:     limit.Microseconds() * instructionsPerMicro,
		started: now,
		looked:  now,
		limit:   limit,
		held:    held,
		heap:    heap,
	}
	long := max(1, int64(limit/usualTime)) // what may run longer may make more
	b.bytes = long*stringBytes + int64(records)*stringBytesPerRecord
	b.allowed, b.threads = b.bytes, int(long)*maxThreads
}

// Done returns nil while the call may go on.
func (b *budget) Done() <-chan struct{} {
	b.left--
	if b.left > 0 {
		return nil
	}
	if b.checkFlag() != nil {
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

func (b *budget) checkFlag() error {
	if b.tripped != nil {
		b.left = 0
		return b.tripped
	}
	b.spent += b.size - b.left
	now := time.Now()
	gap := now.Sub(b.looked)
	b.size = slice
	if gap > slowSlice {
		b.size = slice / 16
	}
	b.left = b.size
	b.used += min(gap, maxGap+b.gap)
	b.looked, b.gap = now, 0
	if b.stop.Load() {
		return b.stopCall(errStopped)
	}
	if b.used > b.limit || now.Sub(b.started) > wallFactor*b.limit {
		return b.stopCall(fmt.Errorf("%w: the call ran longer than %s%s", scripting.ErrTime, b.limit, b.setting))
	}
	if b.spent > b.max {
		return b.stopCall(fmt.Errorf("%w: the call ran more than %d instructions%s", scripting.ErrLimit, b.max, b.setting))
	}
	if err := b.heap.check(now, b.held); err != nil {
		return b.stopCall(err)
	}
	return nil
}

// ran is how many instructions the call has run.
func (b *budget) ran() int64 { return b.spent + b.size - b.left }

// native says that a function of the host is at work on so many bytes: more of
// the time until the next look is the script's.
func (b *budget) native(bytes int) {
	b.gap += nativeGap + time.Duration(bytes)*time.Second/nativeRate
}

// check is for functions of the host that are at work: its error is that the call
// was stopped.
func (b *budget) check() error {
	b.native(0)
	return b.checkFlag()
}

// pause stops the time of the call, which waits for the outside until resume.
func (b *budget) pause() error { return b.checkFlag() }

func (b *budget) resume() {
	now := time.Now()
	b.started = b.started.Add(now.Sub(b.looked))
	b.looked = now
}

func (b *budget) stopCall(err error) error {
	if b.tripped == nil {
		b.tripped = err
	}
	b.left = 0
	return b.tripped
}

// charge takes n instructions for work that a library function does.
func (b *budget) charge(n int64) error {
	b.left -= n
	if b.left > 0 {
		return nil
	}
	return b.checkFlag()
}

// chargeString takes n bytes for a string that is about to be made.
func (b *budget) chargeString(n int64) error {
	if n > maxString {
		return fmt.Errorf("cannot make a string of %d bytes: the limit is %d", n, maxString)
	}
	if b.bytes -= n; b.bytes < 0 {
		return b.stopCall(fmt.Errorf("%w: the call made more than %d bytes of strings", scripting.ErrLimit, b.allowed))
	}
	b.gap += time.Duration(n) * time.Second / copyRate
	// A copied byte is about as much work as a hundredth of an instruction.
	return b.charge(n >> 7)
}

var _ context.Context = (*budget)(nil)
