package js

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// budget bounds one call into a VM. goja looks before every instruction whether
// it was interrupted, which is free, but calls nobody; so the time of the
// scripts that run is taken by the watchdog, in ticks, and a call that has used
// up its time is interrupted.
//
// Native functions are not interrupted. They look themselves whether flag is
// set, and are bounded in what one of them can do.
//
// Once tripped a budget stays so: neither catch nor finally sees the end, and
// the VM is thrown away afterwards.
type budget struct {
	rt      *goja.Runtime
	limit   time.Duration // of ran
	setting string        // what a message says of where limit was set
	bytes   int64         // of strings that native functions may still make
	allowed int64
	heap    heap
	held    func(limit int) int // what the VM holds

	flag atomic.Uint32         // what native functions are to do; 0 is nothing
	why  atomic.Pointer[error] // the call was stopped

	spent, max      int64 // of work of the host
	entered, paused int
	worked          time.Duration // since the last look at what the VM holds between calls

	// While the watchdog has it these are the watchdog's.
	index   int           // in the watchdog's list; -1: it is not there
	started time.Time     // of the call, later by what it waited
	looked  time.Time     // when ran was last added to
	ran     time.Duration // by the script, until looked
	left    time.Time     // when it was left, to wait or for good
}

const (
	// flagLook asks for a look at what the VM holds, flagStop for the end.
	flagLook = 1 << iota
	flagStop
)

const (
	// wallFactor and leastWall bound the whole call, however little of it the
	// script ran: what a busy machine does with the rest is not its fault.
	wallFactor = 10
	leastWall  = 10 * time.Second
	// stringBytes is what native functions may make of strings in a call, plus
	// stringBytesPerRecord for each record.
	stringBytes          = 64 << 20
	stringBytesPerRecord = 4 << 10
	// workPerMicro turns the time limit into one of what the host does.
	workPerMicro = 1000
	// usualTime is the limit of time that stringBytes is for.
	usualTime = 200 * time.Millisecond
)

// start begins a call. The script runs between enter and leave; it may be in
// between already, and begins again then.
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

// memory sets what the VM may hold.
func (b *budget) memory(limit int64, setting string) {
	watching.runUnwatched(func() { b.heap.start(limit, setting) })
}

// enter says that the script runs from here on the calling goroutine, leave
// that it does not. Nested calls have no effect.
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

// pause stops the time of the call, which waits for the outside until resume.
func (b *budget) pause() error {
	b.paused, b.entered = b.entered, 1
	b.leave()
	return b.err()
}

func (b *budget) resume() {
	b.enter()
	b.entered = b.paused
}

// addTime adds the time since the last look, as far as a tick can take: what is
// longer is time in which the machine did something else.
func (b *budget) addTime(now time.Time) {
	b.ran += min(now.Sub(b.looked), maxGap)
	b.looked = now
}

// used is the time that the script took in the call so far, without what it
// waited.
func (b *budget) used() time.Duration {
	if b.entered > 0 {
		watching.runUnwatched(func() { b.addTime(time.Now()) })
	}
	return b.ran
}

// err says why the call was stopped; nil: it was not.
func (b *budget) err() error {
	if p := b.why.Load(); p != nil {
		return *p
	}
	return nil
}

// stopCall stops the call. It may be called by any goroutine while the budget is
// entered.
func (b *budget) stopCall(err error) error {
	if b.why.CompareAndSwap(nil, &err) {
		b.flag.Or(flagStop)
		b.rt.Interrupt(err)
	}
	return b.err()
}

// tick is the watchdog's look at a script that runs.
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

// checkFlag does what flag asks for.
func (b *budget) checkFlag() error {
	if b.flag.Load()&flagLook != 0 {
		b.flag.And(^uint32(flagLook))
		if err := b.heap.measureHeld(b.held); err != nil {
			return b.stopCall(err)
		}
	}
	return b.err()
}

// check is for native functions: it does not return when the call was stopped.
func (b *budget) check() {
	if b.flag.Load() != 0 && b.checkFlag() != nil {
		// An interrupted runtime panics with this value; the reason is in why.
		panic(&goja.InterruptedError{})
	}
}

// stopped is for functions of the host that are at work: its error is that the
// call was stopped.
func (b *budget) stopped() error {
	if b.flag.Load() == 0 {
		return nil
	}
	return b.checkFlag()
}

// charge is for functions of the host: it takes n for work that is about as
// much as n instructions, which bounds them whatever the clock says. The error
// is that the call was stopped.
func (b *budget) charge(n int64) error {
	if b.spent += n; b.spent > b.max {
		return b.stopCall(fmt.Errorf("%w: the call made the host do more than the work of %d instructions%s", scripting.ErrLimit, b.max, b.setting))
	}
	return b.stopped()
}

// native says that a function of the host is at work on so many bytes.
func (b *budget) native(bytes int) { b.spent += int64(bytes >> 5) }

// chargeString takes n bytes for a string that is about to be made.
func (b *budget) chargeString(n int64) error {
	if n > scripting.MaxString {
		return fmt.Errorf("cannot make a string of %d bytes: the limit is %d", n, scripting.MaxString)
	}
	if b.bytes -= n; b.bytes < 0 {
		return b.stopCall(fmt.Errorf("%w: the call made more than %d bytes of strings", scripting.ErrLimit, b.allowed))
	}
	return b.charge(n >> 7)
}
