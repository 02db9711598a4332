package js

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// budget limits one call into a VM. goja checks before every instruction
// whether it was interrupted, which costs nothing, but it has no callback.
// Therefore, the watchdog measures the time of running scripts in ticks, and
// interrupts a call that has used up its time.
//
// Native functions are not interrupted. They check flag themselves, and the
// work of each one is limited.
//
// After a budget has tripped, it stays tripped: neither catch nor finally can
// stop it, and the VM is discarded.
type budget struct {
	rt      *goja.Runtime
	limit   time.Duration // maximum of ran
	setting string        // description in messages of the setting for limit
	bytes   int64         // bytes of strings that native functions may still create
	allowed int64
	heap    heap
	held    func(limit int) int // measures the memory of the VM

	flag atomic.Uint32         // requests to native functions; 0 if there are none
	why  atomic.Pointer[error] // the call was stopped

	spent, max      int64 // work of the host
	entered, paused int
	worked          time.Duration // since the VM's memory was last measured between calls

	// While the budget is in the watchdog's list, these belong to the watchdog.
	index   int           // index in the watchdog's list; -1 if it is not in it
	started time.Time     // start of the call, moved by the time that it waited
	looked  time.Time     // when ran was last added to
	ran     time.Duration // time used by the script until looked
	left    time.Time     // when the VM was left, to wait or at the end
}

const (
	// flagLook requests a measurement of the VM's memory, flagStop the end of the
	// call.
	flagLook = 1 << iota
	flagStop
)

const (
	// wallFactor and leastWall limit the total time of a call, however little CPU
	// time the script used on a busy machine.
	wallFactor = 10
	leastWall  = 10 * time.Second
	// stringBytes is the limit for strings that native functions create in a call,
	// plus stringBytesPerRecord per record.
	stringBytes          = 64 << 20
	stringBytesPerRecord = 4 << 10
	// workPerMicro converts the time limit into a limit for the work of the host.
	workPerMicro = 1000
	// usualTime is the time limit to which stringBytes applies.
	usualTime = 200 * time.Millisecond
)

// start begins a call. The script runs between enter and leave. If it has
// already entered, its time starts again.
func (b *budget) start(limit time.Duration, records int) {
	watching.runUnwatched(func() {
		b.limit, b.ran, b.started = limit, 0, time.Time{}
		if b.entered > 0 {
			b.started = time.Now()
			b.looked = b.started
		}
	})
	b.bytes = max(1, int64(limit/usualTime))*stringBytes + int64(records)*stringBytesPerRecord
	b.allowed = b.bytes
	b.spent, b.max = 0, limit.Microseconds()*workPerMicro
}

// memory sets the memory limit of the VM.
func (b *budget) memory(limit int64, setting string) {
	watching.runUnwatched(func() { b.heap.start(limit, setting) })
}

// enter marks the start of running the script on the calling goroutine, leave
// the end. Nested calls have no effect.
func (b *budget) enter() {
	if b.entered++; b.entered > 1 {
		return
	}
	now := time.Now()
	if b.started.IsZero() {
		b.started = now
	} else {
		b.started = b.started.Add(now.Sub(b.left))
	}
	b.looked = now
	watching.add(b)
}

func (b *budget) leave() {
	if b.entered--; b.entered > 0 {
		return
	}
	watching.remove(b)
	b.left = time.Now()
	b.addTime(b.left)
	b.worked += b.ran
}

// pause stops the time of the call, which waits for external events until
// resume.
func (b *budget) pause() error {
	b.paused, b.entered = b.entered, 1
	b.leave()
	return b.err()
}

func (b *budget) resume() {
	b.enter()
	b.entered = b.paused
}

// aside calls fn, which enters the VM, with a time limit of its own. The call has
// paused; its limits are not affected.
func (b *budget) aside(limit time.Duration, fn func()) {
	time, setting, bytes, allowed, spent, most, worked := b.limit, b.setting, b.bytes, b.allowed, b.spent, b.max, b.worked
	started, looked, ran, left := b.started, b.looked, b.ran, b.left
	b.start(limit, 0)
	b.setting = ""
	fn()
	b.limit, b.setting, b.bytes, b.allowed, b.spent, b.max, b.worked = time, setting, bytes, allowed, spent, most, worked
	b.started, b.looked, b.ran, b.left = started, looked, ran, left
	b.why.Store(nil)
	b.flag.Store(0)
	b.rt.ClearInterrupt()
}

// addTime adds the time since the last tick, up to the maximum for a tick: in
// the rest of the time, the machine did something else.
func (b *budget) addTime(now time.Time) {
	b.ran += min(now.Sub(b.looked), maxGap)
	b.looked = now
}

// used returns the time that the script has used in the call so far, without
// waiting.
func (b *budget) used() (ran time.Duration) {
	if b.entered == 0 {
		return b.ran
	}
	watching.runUnwatched(func() {
		b.addTime(time.Now())
		ran = b.ran
	})
	return ran
}

// err returns why the call was stopped, or nil if it was not.
func (b *budget) err() error {
	if p := b.why.Load(); p != nil {
		return *p
	}
	return nil
}

// stopCall stops the call. Any goroutine may call it while the script runs.
func (b *budget) stopCall(err error) error {
	if b.why.CompareAndSwap(nil, &err) {
		b.flag.Or(flagStop)
		b.rt.Interrupt(err)
	}
	return b.err()
}

// tick checks a running script for the watchdog.
func (b *budget) tick(now time.Time, m *memoryNow) {
	b.addTime(now)
	if b.ran > b.limit || now.Sub(b.started) > max(wallFactor*b.limit, leastWall) {
		b.stopCall(fmt.Errorf("%w: the call ran longer than %s%s", scripting.ErrTime, b.limit, b.setting))
		return
	}
	if err := b.heap.tick(now, m, &b.flag); err != nil {
		b.stopCall(err)
	}
}

// checkFlag handles the requests in flag.
func (b *budget) checkFlag() error {
	if b.flag.Load()&flagLook != 0 {
		b.flag.And(^uint32(flagLook))
		if err := b.heap.measureHeld(b.held); err != nil {
			return b.stopCall(err)
		}
	}
	return b.err()
}

// check is called by native functions. It does not return if the call was
// stopped.
func (b *budget) check() {
	if b.flag.Load() != 0 && b.checkFlag() != nil {
		// An interrupted runtime panics with this value; the reason is in why.
		panic(&goja.InterruptedError{})
	}
}

// stopped is called by working host functions. It returns an error if the call
// was stopped.
func (b *budget) stopped() error {
	if b.flag.Load() == 0 {
		return nil
	}
	return b.checkFlag()
}

// charge is called by host functions. It charges n for work that corresponds to
// about n instructions, which limits it independently of the clock. It returns
// an error if the call was stopped.
func (b *budget) charge(n int64) error {
	if b.spent += n; b.spent > b.max {
		return b.stopCall(fmt.Errorf("%w: the call made the host do more than the work of %d instructions%s", scripting.ErrLimit, b.max, b.setting))
	}
	return b.stopped()
}

// native charges the work of a host function on the given number of bytes.
func (b *budget) native(bytes int) { b.spent += int64(bytes >> 5) }

// chargeString charges n bytes for a string that will be created.
func (b *budget) chargeString(n int64) error {
	if n > scripting.MaxString {
		return fmt.Errorf("cannot make a string of %d bytes: the limit is %d", n, scripting.MaxString)
	}
	if b.bytes -= n; b.bytes < 0 {
		return b.stopCall(fmt.Errorf("%w: the call made more than %d bytes of strings", scripting.ErrLimit, b.allowed))
	}
	return b.charge(n >> 7)
}
