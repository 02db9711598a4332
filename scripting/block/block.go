package block

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/state"
)

// Script is the block script, with the host's settings for every script.
type Script struct {
	// Concurrency specifies how calls of one node may overlap.
	Concurrency Concurrency `alloy:"concurrency,attr,optional"`
	// By are the labels by which "partition" selects the VM; __name__ is the
	// metric name.
	By []string `alloy:"by,attr,optional"`
	// OnError says what becomes of data whose hook failed: "pass" sends it on
	// unchanged, "drop" drops and counts it, "quarantine" stores it, "hold" does
	// not accept it until the script works, but stores single records that it
	// cannot process; "" is the kind's default.
	OnError scripting.OnError `alloy:"on_error,attr,optional"`
	// OnReload says how a saved change takes over: "swap" at once, "test" when
	// its tests pass, "shadow" when it has also processed recent input and no
	// guard of Shadow refuses it. "" is "test" if the script has a test file,
	// otherwise "swap".
	OnReload OnReload `alloy:"on_reload,attr,optional"`
	// Shadow sets the guards of OnReload "shadow" and how much input it keeps.
	Shadow Shadow `alloy:"shadow,block,optional"`
	// Canary gives a changed version of a transform a share of the data first; nil: it
	// takes over without.
	Canary *Canary `alloy:"canary,block,optional"`
	// Limits bound what one call may use.
	Limits Limits `alloy:"limits,block,optional"`
	// Quarantine bounds what on_error = "quarantine" and "hold" store.
	Quarantine Quarantine `alloy:"quarantine,block,optional"`
	// Allow grants what the script needs of the world outside.
	Allow Allow `alloy:"allow,block,optional"`

	http     HTTP     // of a script that needs ctx.http
	requests Requests // of one that takes requests
}

// SetToDefault sets the defaults.
func (b *Script) SetToDefault() {
	*b = Script{Concurrency: "ordered"}
	b.Shadow.SetToDefault()
	b.Limits.SetToDefault()
	b.Quarantine.SetToDefault()
}

// Validate checks combinations of settings.
func (b *Script) Validate() error {
	if partition := b.Concurrency == ConcurrencyPartition; partition != (len(b.By) > 0) {
		if partition {
			return errors.New(`cannot use script.concurrency = "partition" without by: write by = ["job"], the labels whose values meet the same VM`)
		}
		return errors.New(`cannot use script.by: it is for concurrency = "partition"`)
	}
	if slices.Contains(b.By, "") {
		return errors.New(`cannot use "" in script.by: it must be the name of a label`)
	}
	return nil
}

// EmitLimit returns the number of records that the call for a batch of n may
// emit, in a component of the given kind.
func (b *Script) EmitLimit(kind scripting.ComponentKind, n int) int {
	if b.Limits.Emit > 0 {
		return b.Limits.Emit
	}
	if kind == scripting.Source {
		return sourceEmit
	}
	return 10*n + 10_000
}

// Client returns the connection settings of ctx.http.
func (b *Script) Client() httpclient.Arguments { return b.http.client() }

// RequestLimits returns the limits of the requests to the script's routes.
func (b *Script) RequestLimits() Requests { return b.requests }

// CheckState returns an error if a script declares more state than its block
// allows.
func (b *Script) CheckState(name string, def *scripting.Definition) error {
	limit := cmp.Or(int64(b.Limits.State), state.DefaultNodeBytes)
	size := func(n int64) string {
		text, _ := component.Size(n).MarshalText() // it has no errors
		return string(text)
	}
	for _, d := range def.State {
		if d.MaxBytes > limit {
			return fmt.Errorf("cannot use max_bytes = %s of state %s in %s: the node may keep %s; declare less, or write limits { state = %q } in the block script",
				size(d.MaxBytes), d.Name, name, size(limit), size(d.MaxBytes))
		}
	}
	return nil
}

// sourceEmit is the default number of records that a call of a source may emit,
// which does not depend on a batch.
const sourceEmit = 100_000

// Limits are the limits of one call of a script.
type Limits struct {
	// Time is the time limit of a call, plus 20µs per record.
	Time time.Duration `alloy:"time,attr,optional"`
	// Memory is the memory limit of a VM: the tables, strings and functions that
	// the script can reach.
	Memory component.Size `alloy:"memory,attr,optional"`
	// Wait is the limit for each wait for external events, in addition to Time:
	// ctx.sleep, a request.
	Wait time.Duration `alloy:"wait,attr,optional"`
	// Emit is the number of records that a call may emit. By default, it is ten
	// per record of the batch, plus 10,000.
	Emit int `alloy:"emit,attr,optional"`
	// Output is the number of bytes of lines, labels and metadata that a call may
	// set and emit, in addition to 4 KiB per record and the size of the lines of
	// its batch.
	Output component.Size `alloy:"output,attr,optional"`
	// State is the number of bytes that the entries of all of ctx.state may have,
	// each with its key and 128 bytes. 0 is 256MiB, within 1GiB of all nodes.
	State component.Size `alloy:"state,attr,optional"`
}

// SetToDefault sets the defaults.
func (l *Limits) SetToDefault() {
	*l = Limits{Time: 200 * time.Millisecond, Memory: scripting.DefaultMemory, Wait: 10 * time.Second, Output: view.DefaultMade}
}

// Validate checks the ranges.
func (l *Limits) Validate() error {
	if l.Time < time.Millisecond || l.Time > time.Minute {
		return fmt.Errorf("cannot use script.limits.time = %q: it must be between 1ms and 1m", l.Time)
	}
	if l.Wait < time.Millisecond || l.Wait > 10*time.Minute {
		return fmt.Errorf("cannot use script.limits.wait = %q: it must be between 1ms and 10m", l.Wait)
	}
	if l.Memory < 1<<20 || l.Memory > 1<<40 {
		return fmt.Errorf("cannot use script.limits.memory = %d: it must be between 1MiB and 1TiB", l.Memory)
	}
	if l.Output < 1<<20 || l.Output > 1<<40 {
		return fmt.Errorf("cannot use script.limits.output = %d: it must be between 1MiB and 1TiB", l.Output)
	}
	if l.State != 0 && (l.State < 1<<10 || l.State > 1<<40) {
		return fmt.Errorf("cannot use script.limits.state = %d: it must be between 1KiB and 1TiB", l.State)
	}
	if l.Emit < 0 {
		return fmt.Errorf("cannot use script.limits.emit = %d: it must not be negative", l.Emit)
	}
	return nil
}

// OnReload is how a saved change takes over.
type OnReload string

// The supported ways to take over.
const (
	OnReloadSwap   OnReload = "swap"
	OnReloadTest   OnReload = "test"
	OnReloadShadow OnReload = "shadow"
)

// UnmarshalText accepts what is supported.
func (o *OnReload) UnmarshalText(text []byte) error {
	return choose((*string)(o), "on_reload", text, []string{"swap", "test", "shadow"}, []string{"manual"})
}

func choose(into *string, name string, text []byte, supported, planned []string) error {
	quoted := make([]string, len(supported))
	for i, s := range supported {
		quoted[i] = strconv.Quote(s)
	}
	what := strings.Join(quoted, " or ")
	switch s := string(text); {
	case slices.Contains(supported, s):
		*into = s
		return nil
	case slices.Contains(planned, s):
		return fmt.Errorf("cannot use %s = %q: it is not supported yet, there is %s", name, s, what)
	default:
		return fmt.Errorf("cannot use %s = %q: it must be %s", name, s, what)
	}
}

// Concurrency is a mode of running one node's calls. In every mode, the order
// of a series is kept: a source sends its next batch when the previous call has
// returned, and the results of the parts of a batch are sent as one batch.
type Concurrency string

// UnmarshalText accepts the modes.
func (c *Concurrency) UnmarshalText(text []byte) error {
	return choose((*string)(c), "concurrency", text, []string{"ordered", "parallel", "single", "partition"}, nil)
}

// Exclusive reports whether calls of two instances must not overlap.
func (c Concurrency) Exclusive() bool {
	return c == ConcurrencySingle || c == ConcurrencyPartition
}

// The modes.
const (
	// ConcurrencyOrdered runs batches of several sources concurrently, each on any
	// VM.
	ConcurrencyOrdered Concurrency = "ordered"
	// ConcurrencyParallel also splits large batches.
	ConcurrencyParallel Concurrency = "parallel"
	// ConcurrencySingle runs one call at a time, on one VM.
	ConcurrencySingle Concurrency = "single"
	// ConcurrencyPartition splits batches by label values. The same values always
	// use the same VM.
	ConcurrencyPartition Concurrency = "partition"
)

// Quarantine contains the limits of a node's quarantine. The oldest data is
// dropped.
type Quarantine struct {
	// MaxSize is the maximum size in bytes.
	MaxSize component.Size `alloy:"max_size,attr,optional"`
	// MaxAge is the maximum age.
	MaxAge time.Duration `alloy:"max_age,attr,optional"`
}

// SetToDefault sets the defaults.
func (b *Quarantine) SetToDefault() {
	*b = Quarantine{MaxSize: 64 << 20, MaxAge: 7 * 24 * time.Hour}
}

// Validate checks the ranges.
func (b *Quarantine) Validate() error {
	var errs []error
	if b.MaxSize < 1<<20 {
		errs = append(errs, errors.New("cannot use this script.quarantine.max_size: it must be 1MiB at least"))
	}
	if b.MaxAge < time.Minute {
		errs = append(errs, fmt.Errorf("cannot use script.quarantine.max_age = %q: it must be 1m at least", b.MaxAge))
	}
	return errors.Join(errs...)
}
