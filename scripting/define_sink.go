package scripting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/outbox"
)

// HookSend is the hook of a sink. VM.Metrics and VM.Logs run it for a program
// whose Kind is Sink.
const HookSend = "send"

// defineAccepts reads accepts = { "metrics", "logs" }: the signals that a sink
// takes.
func defineAccepts(d *definer, field RawField) { d.def.takes = d.signals(field) }

// BatchBlock contains the limits of the batches that a sink gets.
type BatchBlock struct {
	// MaxRecords is the maximum number of records in a batch.
	MaxRecords int `alloy:"max_records,attr,optional"`
	// MaxBytes is the approximate maximum size of the records in a batch: their
	// labels, values and lines.
	MaxBytes component.Size `alloy:"max_bytes,attr,optional"`
	// MaxWait is how long records wait for more records.
	MaxWait time.Duration `alloy:"max_wait,attr,optional"`
	// InFlight is the number of batches of one signal that are sent concurrently.
	InFlight int `alloy:"in_flight,attr,optional"`
}

// The limits if neither the definition nor the block sets them.
var defaultBatch = BatchBlock{MaxRecords: 1000, MaxBytes: 1 << 20, MaxWait: time.Second, InFlight: 4}

// Validate checks the ranges.
func (b *BatchBlock) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if b.MaxRecords < 1 || b.MaxRecords > 1_000_000 {
		add("cannot use batch.max_records = %d: it must be between 1 and 1000000", b.MaxRecords)
	}
	if b.MaxBytes < 1<<10 || b.MaxBytes > 64<<20 {
		add("cannot use batch.max_bytes = %d: it must be between 1KiB and 64MiB", int64(b.MaxBytes))
	}
	if b.MaxWait < 0 || b.MaxWait > time.Hour {
		add("cannot use batch.max_wait = %q: it must be between 0s and 1h", b.MaxWait)
	}
	if b.InFlight < 1 || b.InFlight > outbox.MaxInFlight {
		add("cannot use batch.in_flight = %d: it must be between 1 and %d", b.InFlight, outbox.MaxInFlight)
	}
	return errors.Join(errs...)
}

// batchKeys are the keys of batch in a definition, with the type of each.
var batchKeys = []struct {
	name string
	kind ArgKind
	set  func(b *BatchBlock, n int64)
}{
	{"max_records", ArgInt, func(b *BatchBlock, n int64) { b.MaxRecords = int(n) }},
	{"max_bytes", ArgSize, func(b *BatchBlock, n int64) { b.MaxBytes = component.Size(n) }},
	{"max_wait", ArgDuration, func(b *BatchBlock, n int64) { b.MaxWait = time.Duration(n) }},
	{"in_flight", ArgInt, func(b *BatchBlock, n int64) { b.InFlight = int(n) }},
}

// defineBatch reads batch = { max_records = 500, max_bytes = "1MiB", max_wait =
// "1s", in_flight = 4 }: the default limits of the block.
func defineBatch(d *definer, field RawField) {
	m, ok := field.Value.(map[string]any)
	if l, isList := field.Value.([]any); isList && len(l) == 0 {
		ok = true // {} in Lua
	}
	if !ok {
		d.fail(field.Line, `cannot use %s as batch: it must be a table of %s and others`, describe(field.Value), d.written("max_records"))
		return
	}
	names := make([]string, len(batchKeys))
	for i, k := range batchKeys {
		names[i] = d.written(k.name)
	}
	for _, name := range sortedKeys(m) {
		i := slices.Index(names, name)
		if i < 0 {
			e := d.fail(field.Line, "cannot use %q in batch: there is %s", name, strings.Join(names, ", "))
			e.Hint = config.DidYouMean(name, names)
			continue
		}
		v, err := (&Arg{Kind: batchKeys[i].kind}).convert(m[name])
		if err != nil {
			d.fail(field.Line, "cannot use this batch.%s: %w", name, err)
			continue
		}
		batchKeys[i].set(&d.def.Batch, v.Int())
	}
	if err := d.def.Batch.Validate(); err != nil {
		d.fail(field.Line, "%w", err)
	}
}

// completeSink checks the required keys of a sink. By default, it takes
// metrics.
func (d *definer) completeSink(line int) {
	if !d.def.Send && len(d.errs) == 0 {
		d.fail(line, "cannot use a sink without the hook send: write send = function(batch, ctx) … end")
	}
	if d.def.takes == 0 {
		d.def.takes = sendsMetrics
	}
}
