package component

import (
	"context"
	"fmt"
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
	// Run works until ctx ends and returns after its last goroutine has ended. If
	// it returns nil earlier, the component is done (health: exited). If it
	// returns an error, the engine builds and runs a new component, with back-off.
	//
	// When ctx ends, a source first finishes the batch in flight and then returns.
	// The components that it sends to still run at that time. If the cause is
	// ErrRemoved, the source sends staleness markers for its series. When weir
	// stops, it sends none, because the next process continues the series.
	//
	// A component that is replaced gets ErrReplaced as the cause. If it has no
	// receiver, its Run returns before the Run of the new component is called. If
	// it has a receiver, both run at the same time until the calls in flight on
	// the old component have returned. Calls may arrive before Run has opened the
	// resources that they need; they must wait for Run.
	Run(ctx context.Context) error
}

// Updater is a Component that can take new arguments while it runs.
type Updater interface {
	// Update takes a decoded value of the type that NewArgs of the Registration
	// returns. It is called from one goroutine at a time, concurrently with Run,
	// and possibly before Run has been called. On error, the component keeps its
	// old arguments. If the error is ErrRebuild, the engine builds a new
	// component.
	Update(args any) error
}

// Sourced is a Component that reads files in addition to its arguments. The
// engine calls Update with the same arguments when one of the files changes.
type Sourced interface {
	// Sourced returns absolute paths. The last element of a path may be a pattern
	// with a star. The engine calls it after Build and after each Update.
	Sourced() []string
}

// Debugger is a Component with details for the web UI and the status API.
type Debugger interface {
	// DebugInfo returns a value that encoding/json can marshal, without
	// secrets. It is called from any goroutine and must not block. If its JSON has a
	// member reports, a list of objects with the members name and text, the web UI shows
	// each text by its name.
	DebugInfo() any
}

// Warner is an arguments struct, or the struct of a nested block, that warns
// about its values. It is called after Validate.
type Warner interface {
	// Warnings returns sentences that name the attribute they are about, such as
	// "max_cache_size has no effect". They are shown at the position of the
	// attribute.
	Warnings() []string
}

// StorageChecker is an arguments struct that names files to read. The files
// must not be files of weir's own.
type StorageChecker interface {
	// CheckStorage returns the errors in the arguments if dir is the storage
	// directory. dir is absolute and need not exist. CheckStorage is called after
	// Validate.
	CheckStorage(dir string) []*ArgumentError
}

// FileNamer is an arguments struct of a Pure component that names files to read.
type FileNamer interface {
	// NamedFiles returns the files in the arguments. Building a component must read no
	// other file that the arguments can name.
	NamedFiles() []NamedFile
}

// NamedFile is a file in an argument.
type NamedFile struct {
	Path string // of the argument, as in ArgumentError
	File string
}

// Content is a kind of data that some sinks cannot send. The text completes the
// sentence "this creates …".
type Content string

// CustomBuckets can be sent with remote write 2.0 only.
const CustomBuckets Content = "native histograms with custom buckets"

// Maker is an arguments struct that may make the component create a Content.
type Maker interface {
	// Makes returns the Contents that the component creates, each with the
	// argument that enables it.
	Makes() map[Content]string
}

// Loser is an arguments struct of a sink that may drop a Content.
type Loser interface {
	// Loses returns the reasons why a sink with these arguments drops a Content.
	// It returns nil if the sink sends it.
	Loses(c Content) []Loss
}

// Loss is a reason why a sink drops a Content.
type Loss struct {
	Path string // the argument that causes it
	Why  string // a main clause
	Hint string // what to do
}

// ArgumentError is an error in one argument of a block.
type ArgumentError struct {
	// Path is the path of the argument, such as tls.cert_file. If the argument is
	// not written, Path is the path of the innermost block around it that is.
	Path string
	Err  error
	// Detail says what to write instead, on separate lines. It may be empty.
	Detail string
	// Warning reports that the error is only a warning: the arguments are
	// accepted.
	Warning bool
}

func (e *ArgumentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ArgumentError) Unwrap() error { return e.Err }

// HTTPHandler is a Component that serves HTTP below /api/v0/component/<id>/, to
// everyone. The handler gets paths without that prefix, and none of weir's
// credentials. Response headers that affect weir's whole origin, such as
// Set-Cookie, are removed, and browsers isolate the response
// (Content-Security-Policy: sandbox).
type HTTPHandler interface {
	Handler() http.Handler
}

// Controller is a Component with private data that its user may read and change
// while it runs: the state of a script, and the data that it could not send.
type Controller interface {
	// Control serves below /api/v0/control/<id>/, over the control socket and to
	// callers with credentials. The handler gets paths without that prefix.
	Control() http.Handler
}

// Grant is access to an external resource.
type Grant struct {
	Kind string // such as exec
	What string // a pattern or a name, such as /usr/bin/uptime
	Path string // of the argument, as in ArgumentError
}

// Registration defines a block name.
type Registration struct {
	// Name is the block's name, such as prometheus.scrape.
	Name string
	// Version changes when the component's code changes. The engine then rebuilds
	// its nodes. Native components leave it empty.
	Version string
	// Origin is a clause that says where the component is defined and which
	// arguments it has. It is used in errors about unknown and missing arguments.
	// It may be empty.
	Origin string
	// Sources are the absolute paths of the files that define the component. If
	// one file has the component's name, it is the first. The engine calls Lookup
	// again when one of them changes.
	Sources []string
	// Err says why a known name has no component, for example because a script
	// does not compile. Only Name, Sources and, if the content could be read,
	// Version are set then.
	Err error

	// Accepts are the signals that its receiver takes. With 0 it has no receiver.
	// Otherwise, Exports must have a field tagged `alloy:"receiver,attr"` of type
	// *flow.Receiver, which the engine sets before Build.
	Accepts batch.Signals
	// Sends are the signals that it sends to the receivers in its arguments.
	// Before anything is built, the engine checks that these receivers accept
	// them.
	Sends batch.Signals
	// Passes is set for a component that forwards the signals it receives. It
	// returns the signals, at least one of Accepts, that the component supports
	// with these decoded arguments, and why it does not support the rest. The node
	// accepts and sends only signals that Passes returns and that a receiver in
	// its arguments takes. nil: all of Accepts.
	Passes func(args any) (signals batch.Signals, why string)

	// NewArgs returns a new pointer to the arguments with their defaults.
	NewArgs func() any
	// Exports is the zero value of the exports struct, or nil if there are no
	// exports.
	Exports any
	// ExportsLater means that the exports are not known before Run. Nodes that
	// refer to them wait for the first Export instead of using the zero value.
	ExportsLater bool
	// External is set for a component without signals whose exports come from outside of
	// the config: from files, the network or the machine. Tests of a whole config replace
	// such components, as well as sources and sinks.
	External bool
	// Check returns the errors in decoded arguments that depend on the component;
	// Validate returns the rest. settled reports whether everything that an
	// attribute or block depends on is known. If it is not, the value may be
	// different when the component is built. nil: no check.
	Check func(args any, settled func(name string) bool) []*ArgumentError
	// Grants returns the access to external resources that decoded arguments grant. The
	// block policy of a config can deny grants by their kind. nil: none.
	Grants func(args any) []Grant
	// Trial tries this version before a node runs it. It returns nil if the
	// version may run. The engine calls it once for each node and its arguments,
	// from several goroutines, and ends ctx when another version is wanted. nil:
	// every version may run.
	Trial func(ctx context.Context, t Trial) *Rejection
	// Compare compares this version with the running component of a node for a preview
	// of a reload, and affects neither. Begin of t is nil. The difference is nil if there
	// is nothing to compare. encoding/json can marshal it, and its text is for people.
	// The rejection is the one with which Trial would refuse the version for this
	// difference. Compare returns soon after ctx has ended; the difference then says that
	// it is incomplete. The engine calls it from several goroutines. nil: versions cannot
	// be compared.
	Compare func(ctx context.Context, t Trial) (difference fmt.Stringer, r *Rejection)
	// Instead returns the version that a node, given by its ID, runs instead of this
	// one: a version that the user pinned or, if Err is set, the last good version,
	// which runs until another one does. nil means none. The engine calls it for every
	// plan, so it must return soon. It may be nil, and may be set together with Err.
	Instead func(node string) *Registration
	// Pinned is set in the result of Instead if the user pinned the version. It then also
	// replaces a version that runs while Err is set.
	Pinned bool
	// Activated is told that a component of this version became active on a node, by
	// the node's ID, and when. It is called from a goroutine of its own and may block.
	// Calls for one node may come out of order. It may be nil.
	Activated func(node string, at time.Time)
	// Build creates a component. args is a decoded value from NewArgs; the
	// component may keep it. previous is the component of the same node that the
	// new component will replace; it is nil the first time. It still runs and
	// consumes. Take any state that must survive a reload from it, but do not keep
	// a reference to it: each component would then keep all earlier components in
	// memory. Build has no side effect that Run must undo.
	Build func(o Options, args any, previous Component) (Component, error)
	// NeedsServices are the services that the component gets through
	// Options.Service.
	NeedsServices []string
	// Overlaps allows a component without a receiver to run until the next
	// component of the node runs, because it answers requests from outside. If
	// Overlaps is false, Run is called after the Run of the previous component has
	// returned. A component with a receiver always overlaps.
	Overlaps bool

	// Pure is set for a component that only transforms records, or the targets in its
	// arguments: building and running another one with any arguments affects nothing but
	// the receivers in them, and its DataPath is not used. weir then runs copies of its
	// nodes in a playground. If arguments name files, they are a FileNamer: a copy reads
	// only files that the arguments of its node name as well.
	Pure bool
	// Unique allows one node of this name in a graph, and no label.
	Unique bool
	// Doc is the manual of the component.
	Doc Doc
	// About is additional data from the catalog, for tools that know the catalog.
	// It may be nil.
	About any
}

// Trial describes the node for which a version is tried.
type Trial struct {
	// Node is the node's ID.
	Node string
	// Args are the decoded arguments.
	Args any
	// Running is the component that the version would replace. It may have been
	// replaced, or have ended, when Trial is called. It is nil if no component
	// runs, as at the start.
	Running Component
	// Begin is called when a step such as StepTest begins. It is not nil. Calls must not
	// be concurrent, and end before the trial does.
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

// Rejection means that a version of a component failed its trial, or that it must not
// run yet. The engine keeps the running version, or starts LastGood. If there is
// neither, it starts the rejected version. It reports Err in all cases.
type Rejection struct {
	// Step is the step that failed. "" means StepTest.
	Step string
	// Err is why the version failed. It is nil if a step needs a running component and
	// nothing runs: the engine starts LastGood, and then tries the version again.
	Err error
	// LastGood is the newest good version. It is nil if there is none.
	LastGood *Registration
}

// Doc is a component's manual, as `weir components NAME` prints it.
type Doc struct {
	// Summary is a sentence that more paragraphs may follow.
	Summary string
	// Args maps the path of an argument, such as "endpoint.url", to its
	// description in sentences.
	Args map[string]string
	// Exports maps a field of the exports to its description in sentences.
	Exports map[string]string
	// Example is a config without syntax errors.
	Example string
}

// Catalog finds the component of a block name.
type Catalog interface {
	// Lookup returns the registration of a name. ok is false if this catalog does
	// not know the name; a name whose registration has Err is known.
	Lookup(name string) (r Registration, ok bool)
	// Names returns the names that it knows now, sorted.
	Names() []string
	// Roots returns the directories to watch. A change below them may change the
	// results of Lookup and Names. It may be empty.
	Roots() []string
	// Refresh removes the given files from the cache. paths are absolute.
	Refresh(paths []string)
}

// Extensible is a Catalog to which users add components by writing files.
type Extensible interface {
	// NewFile returns the path of the file that would define the component name.
	// It returns "" if no file can define it.
	NewFile(name string) string
}

// Historic is a Catalog that remembers components whose files are gone.
type Historic interface {
	// Removed returns the registration of a name that Lookup does not know any more. Its
	// Err says what is gone, and its Instead returns the version that ran last. ok is
	// false if the catalog does not remember the name.
	Removed(name string) (r Registration, ok bool)
}

// Changing is a Catalog whose results may change although no file changes, for
// example when a long compilation ends.
type Changing interface {
	// OnChange sets the function that is called, from any goroutine, with the
	// files whose results changed. fn does not block. It replaces the previous
	// function. After this call, Lookup no longer waits for long operations.
	OnChange(fn func(paths []string))
}

// PendingError is, or is wrapped by, the Err of a Registration that is not
// known yet, such as the registration of a script that takes long to compile.
// Running nodes keep their version, and a new node waits.
type PendingError struct {
	Err  error
	What string // the pending operation, such as "the compilation of x.lua"
	// Done is closed when the result is known and the function set by Changing has
	// been called.
	Done <-chan struct{}
}

// Error names the pending operation.
func (e *PendingError) Error() string { return e.Err.Error() }

// Options is the engine's input to Build. Except where noted, no field has its
// zero value.
type Options struct {
	// ID is the node's name in the graph: prometheus.scrape.default.
	ID string
	// Position returns the current position of the node's block as file:line, for
	// errors. It is nil if the position is unknown.
	Position func() string
	// Logger carries component_id.
	Logger *slog.Logger
	// Registerer adds the label component_id. The metrics of a component are
	// unregistered when it is replaced or removed. During a replacement, the old
	// and the new component may register the same metric; the metric of the new
	// component is shown. To keep counters across a reload, take the collectors
	// from the previous component and register them.
	Registerer prometheus.Registerer
	// DataPath is a directory for this node alone. It does not exist yet.
	DataPath string
	// StoragePath is weir's storage.path. It is for data that is not stored under
	// the node's name, such as journals.
	StoragePath string
	// UserAgent is the value of the User-Agent header in requests: weir/<version>.
	UserAgent string
	// Clock is the engine's clock.
	Clock clock.Clock
	// Stats counts the node's samples. Pass it to flow.NewOutput, and call Drop
	// for dropped samples.
	Stats *flow.Stats
	// Export replaces the node's exports, except the receiver, which the engine
	// keeps. If they are equal to the current exports, it does nothing. It may be
	// called from Build, Update and Run, and from any goroutine. It does not wait
	// for the nodes that depend on the exports.
	Export func(exports any)
	// Health reports how the component itself sees its health. The engine keeps
	// the last report per h.Reason; a new report replaces only the report of the
	// same reason. The engine merges the reports with its own information (build,
	// update and run errors, operations that do not return), and records when each
	// state began. A component may therefore report the same state repeatedly.
	Health func(h Health)
	// Watch watches operations that could hang: the node is unhealthy while one of
	// them has not returned. If Watch is nil, operations are not watched.
	Watch *stall.Watch
	// Service returns the data of a service named in NeedsServices.
	Service func(name string) (any, error)
}

// Where returns the node's ID and the position of its block, for errors.
func (o Options) Where() string {
	if o.Position == nil {
		return o.ID
	}
	return o.ID + " (" + o.Position() + ")"
}
