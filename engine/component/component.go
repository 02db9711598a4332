package component

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/stall"
)

// Component is one running node of the graph.
type Component interface {
	// Run works until ctx ends and returns after its last goroutine. A nil
	// error before that means the component is done (health: exited); an error
	// makes the engine build and run a new one, with back-off.
	//
	// When ctx ends, a source first finishes the batch in flight and then
	// returns; the components it sends to are still running by then. If the
	// cause is ErrRemoved, its series end: it sends their staleness markers.
	// When weir stops, it sends none: the next process continues the series.
	//
	// A component that is replaced gets ErrReplaced as the cause. Without a
	// receiver, its Run has returned before the new one's is called. With one,
	// both run side by side until the calls in flight on the old one are done;
	// calls may come before Run has opened what they need and then wait for it.
	Run(ctx context.Context) error
}

// Updater is a Component that can take new arguments while it runs.
type Updater interface {
	// Update takes what the Registration's NewArgs returned, decoded. It is
	// called from one goroutine at a time, beside Run, also before Run has
	// been called. On error the component keeps its old arguments; an error
	// that is ErrRebuild makes the engine build a new component instead.
	Update(args any) error
}

// Sourced is a Component that reads files besides its arguments and wants
// Update called (with the same arguments) when one of them changed.
type Sourced interface {
	// Sourced returns absolute paths, of which the last element may be a
	// pattern with a star. The engine asks after Build and after each Update.
	Sourced() []string
}

// Debugger is a Component with details for the page and the status API.
type Debugger interface {
	// DebugInfo returns a value that encoding/json can marshal, without
	// secrets. It is called from any goroutine and must not block.
	DebugInfo() any
}

// Warner is an arguments struct, or one of a nested block, with something to
// say about what was written. It is asked after Validate.
type Warner interface {
	// Warnings are sentences that name the attribute they are about, such as
	// "max_cache_size has no effect": the user sees them at its position.
	Warnings() []string
}

// StorageChecker is an arguments struct that names files to read, which must not
// be weir's own.
type StorageChecker interface {
	// CheckStorage returns what is wrong with the arguments of a weir with this
	// storage directory, which is absolute and need not exist. It is asked after
	// Validate.
	CheckStorage(dir string) []*ArgumentError
}

// Content is something in batches that not every sink can send, in words that
// complete "this makes …".
type Content string

// CustomBuckets is what a sink needs remote write 2.0 for.
const CustomBuckets Content = "native histograms with custom buckets"

// Maker is an arguments struct that may ask for a Content.
type Maker interface {
	// Makes returns the Contents that the component makes, each with the argument
	// that asks for it.
	Makes() map[Content]string
}

// Loser is an arguments struct of a sink that may drop a Content.
type Loser interface {
	// Loses returns why, with these arguments, the sink drops a Content; nothing
	// if it sends it.
	Loses(c Content) []Loss
}

// Loss says why a sink drops a Content.
type Loss struct {
	Path string // the argument that is about it
	Why  string // a main clause
	Hint string // what to do
}

// ArgumentError is what is wrong with one argument of a block.
type ArgumentError struct {
	// Path is where it is, such as tls.cert_file; of one that is not written, the
	// innermost block around it that is.
	Path string
	Err  error
	// Detail is what to write instead, in lines of its own; may be empty.
	Detail string
	// Warning says that it refuses nothing.
	Warning bool
}

func (e *ArgumentError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ArgumentError) Unwrap() error { return e.Err }

// HTTPHandler is a Component that serves HTTP below /api/v0/component/<id>/, to
// everyone. The handler sees paths without that prefix, and no credentials of
// weir's. Headers that act on weir's whole origin, such as Set-Cookie, are taken
// off its answers, and browsers are told to isolate them
// (Content-Security-Policy: sandbox).
type HTTPHandler interface {
	Handler() http.Handler
}

// Controller is a Component with data that its user may look into and change
// while it runs, which is nobody's else: what a script keeps, what it could not
// send.
type Controller interface {
	// Control serves below /api/v0/control/<id>/, over the control socket and
	// to callers with credentials. The handler sees paths without that prefix.
	Control() http.Handler
}

// Registration is what a block name means.
type Registration struct {
	// Name is the block's name, such as prometheus.scrape.
	Name string
	// Version changes when the component's code does; the engine rebuilds the
	// nodes whose Version changed. Natives leave it empty.
	Version string
	// Origin is a clause that says where the component is defined and what its
	// arguments are, for errors about unknown and missing ones; "" for none.
	Origin string
	// Sources are the files, absolute, that the registration was made from; the
	// first is the one that is called by its name, where there is one.
	// The engine asks the catalog again when one of them changes.
	Sources []string
	// Err says why there is no component although the name is known: a script
	// that does not compile. Nothing but Name, Sources and, if its content was read,
	// Version is set then.
	Err error

	// Accepts are the signals its receiver takes. With 0 it has no receiver;
	// otherwise Exports must have a field tagged `alloy:"receiver,attr"` of
	// type *flow.Receiver, which the engine fills before Build.
	Accepts batch.Signals
	// Sends are the signals it sends to the receivers in its arguments. The
	// engine checks them against what those accept before anything is built.
	Sends batch.Signals
	// Passes is for a component that sends on what it gets: it returns the signals,
	// of Accepts, that one with these decoded arguments is for, at least one, and
	// why it is not for the others. Such a node accepts and sends these and no
	// others, and none that no receiver in its arguments takes. nil: all.
	Passes func(args any) (signals batch.Signals, why string)

	// NewArgs returns a new pointer to the arguments, defaults filled in.
	NewArgs func() any
	// Exports is the zero value of the exports struct, nil for none.
	Exports any
	// ExportsLater says that Run learns what there is to export. Nodes that
	// refer to it wait for the first Export instead of taking the zero value.
	ExportsLater bool
	// Check returns what is wrong with decoded arguments beyond what they say of
	// themselves in Validate: it is for what depends on the component. settled
	// tells whether all that an attribute or block of the block depends on is
	// known; else its value may be another when it is built. nil: nothing.
	Check func(args any, settled func(name string) bool) []*ArgumentError
	// Trial tries this version before a node runs it. It returns nil if the version
	// may run. The engine calls it once for each node and its arguments, from several
	// goroutines, and ends ctx when another version is wanted. nil: every version may
	// run.
	Trial func(ctx context.Context, t Trial) *Rejection
	// Build makes a component. args is what NewArgs returned, decoded; the
	// component may keep it. previous is the component of the same node that the
	// new one is about to replace, nil the first time; it still runs and consumes.
	// Take from it what must survive a reload, and do not keep it: each component
	// would then keep all earlier ones in memory. Build has no side effect that
	// Run must undo.
	Build func(o Options, args any, previous Component) (Component, error)
	// NeedsServices are the services that Options.Service answers.
	NeedsServices []string
	// Overlaps says of a component without a receiver that the next one may run
	// while it still does: it is asked from outside, and goes on answering until
	// the next one does. Without, Run is called when that of the one before has
	// returned. What has a receiver always overlaps.
	Overlaps bool

	// Unique allows one node of this name in a graph, and no label.
	Unique bool
	// Doc is the manual of the component.
	Doc Doc
	// About is what its catalog has to say of it beyond this, for tools that know
	// the catalog; nil: nothing.
	About any
}

// Trial describes the node for which a version is tried.
type Trial struct {
	// Node is the node's ID.
	Node string
	// Args are the decoded arguments.
	Args any
	// Running is the component that the version would replace. It may have been
	// replaced, or have ended, when it is called. nil: there is none, as at the start.
	Running Component
	// Begin is told of each step that begins, such as StepTest. It is not nil.
	Begin func(step string)
}

// The steps in which a version can be refused. Those of a trial are StepTest,
// StepShadow and StepCanary.
const (
	StepCompile = "compile" // Registration.Err
	StepCheck   = "check"   // its arguments do not fit the config
	StepTest    = "test"
	StepShadow  = "shadow"
	StepCanary  = "canary"
	StepBuild   = "build"
)

// ShortVersion returns a version as people see it: its first 7 characters.
func ShortVersion(version string) string { return version[:min(7, len(version))] }

// Rejection says that a version of a component failed its trial. The engine
// keeps the version that runs, or starts LastGood. Without either, it starts the
// rejected version. It reports Err in all cases.
type Rejection struct {
	// Step is the step that the version failed in; "" is StepTest.
	Step string
	Err  error
	// LastGood is the newest version that passed its trial; nil when none has.
	LastGood *Registration
	// Passed is when LastGood passed.
	Passed time.Time
}

// Doc is a component's manual, as `weir components NAME` prints it.
type Doc struct {
	// Summary is a sentence, then maybe paragraphs.
	Summary string
	// Args are sentences by attribute path, such as "endpoint.url".
	Args map[string]string
	// Exports are sentences by field of the exports.
	Exports map[string]string
	// Example is a config that parses.
	Example string
}

// Catalog answers what a block name means now.
type Catalog interface {
	// Lookup returns the registration of a name, ok false when this catalog
	// does not know it. A registration with Err is known.
	Lookup(name string) (r Registration, ok bool)
	// Names returns the names it knows now, sorted.
	Names() []string
	// Roots returns the directories to watch: a change below them may change
	// what Lookup and Names answer. May be empty.
	Roots() []string
	// Refresh drops what was remembered about the given files; paths are absolute.
	Refresh(paths []string)
}

// Extensible is a Catalog to which users add components by writing files.
type Extensible interface {
	// NewFile returns the path of a file that would make a component of name; ""
	// if no file would.
	NewFile(name string) string
}

// Changing is a Catalog of which an answer may change although no file does, as
// when something that took long is ready.
type Changing interface {
	// OnChange has fn called with the files whose answers changed, from any
	// goroutine; fn does not block. It replaces what was set before. From then on
	// Lookup does not wait for long.
	OnChange(fn func(paths []string))
}

// PendingError is, or is wrapped by, the Err of a Registration that is not known yet,
// such as that of a script which takes long to compile. Running nodes
// keep their version, and a new node waits.
type PendingError struct {
	Err  error
	What string // what is waited for, such as "the compilation of x.lua"
	// Done is closed when the answer is known, after Changing's function was called.
	Done <-chan struct{}
}

// Error says what takes long.
func (e *PendingError) Error() string { return e.Err.Error() }

// Options is what the engine gives to Build. The zero value of a field is
// never passed.
type Options struct {
	// ID is the node's name in the graph: prometheus.scrape.default.
	ID string
	// Position returns where the node's block is now, as file:line, for errors.
	// nil: nobody knows.
	Position func() string
	// Logger carries component_id.
	Logger *slog.Logger
	// Registerer adds the label component_id. What the component registers is
	// unregistered when it is replaced or removed; meanwhile the old and the new
	// component may register the same, of which the new one's is shown. To count
	// on over a reload, take the collectors from the previous component and register them.
	Registerer prometheus.Registerer
	// DataPath is a directory of the node's own, not created yet.
	DataPath string
	// StoragePath is weir's storage.path, for what is not found by the node's
	// name: journals.
	StoragePath string
	// UserAgent is what weir calls itself in requests: weir/<version>.
	UserAgent string
	// Clock is the engine's clock.
	Clock clock.Clock
	// Stats counts the node's samples: pass it to flow.NewOutput, and Drop what
	// is dropped.
	Stats *flow.Stats
	// Export replaces the node's exports (all of them but receiver, which the
	// engine keeps). Equal exports propagate nothing. It may be called from
	// Build, Update and Run, from any goroutine, and does not wait for the
	// nodes that depend on it.
	Export func(exports any)
	// Health reports how the component itself sees its health. The engine keeps
	// the last report for each h.Reason: a report ends that of the same reason
	// alone. It merges them with what it knows (build, update and run errors,
	// operations that do not return), and keeps when each began: a report may
	// repeat the state.
	Health func(h Health)
	// Watch is told of operations that could hang, so that the node is unhealthy
	// while one has not returned. nil: nobody watches.
	Watch *stall.Watch
	// Service returns the data of a service named in NeedsServices.
	Service func(name string) (any, error)
}

// Where names the node and the place of its block, for errors.
func (o Options) Where() string {
	if o.Position == nil {
		return o.ID
	}
	return o.ID + " (" + o.Position() + ")"
}
