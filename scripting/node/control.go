package node

import (
	"net/http"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/versions"
)

var _ component.Controller = (*Component)(nil)

// controls returns the routes of Control.
func (c *Component) controls() *api.Mux {
	m := new(api.Mux)
	c.stateRoutes(m)
	c.quarantineRoutes(m)
	c.historyRoutes(m)
	m.Handle("POST /canary/{decision}", c.serveCanary, canaryOperation)
	m.Handle("GET /profile", c.serveProfile, profileOperation)
	m.Handle("POST /tests", c.serveTests, testsOperation)
	m.Handle("POST /debug", c.serveDebug, debugOperation)
	m.Handle("GET /playground", c.servePlaygroundStart, playgroundStartOperation)
	m.Handle("POST /playground", c.servePlayground, playgroundOperation)
	m.Handle("PUT /source", c.serveWriteSource, writeSourceOperation)
	return m
}

// Control serves what the commands of weir ask a script for.
func (c *Component) Control() http.Handler { return c.controls() }

// ControlRoutes returns the descriptions of the routes of Control. Their paths are below
// /api/v0/control/{node}.
func ControlRoutes() []api.Route { return new(Component).controls().Routes() }

// The descriptions of the routes of Control.
var (
	versionParam = api.Param{Name: "version", Doc: "The ID of the version, or its first characters; by default the version that was active before."}
	keyParam     = api.Param{Name: "key", Doc: "A key."}
	noHistory    = api.Refused(http.StatusNotFound, "There is no such node, or its script ships with weir and has one version.")
	noState      = api.Refused(http.StatusNotFound, "There is no such node, state or key.")

	listStateOperation = api.Operation{
		ID: "listState", Records: true, Summary: "Lists the state of a script.",
		Answers: []api.Answer{api.OK("The state, without its entries.", []host.StateSummary{}), api.NotFound},
	}
	getStateOperation = api.Operation{
		ID: "getState", Records: true, Summary: "Returns the entries of a state, or the value of a key.",
		Params:  []api.Param{{Name: "name", Doc: "The name of the state."}, keyParam},
		Answers: []api.Answer{api.OK("The entries or the value.", nil), api.Refused(http.StatusBadRequest, "The state is a queue, which has no keys."), noState},
	}
	exportAllStateOperation = api.Operation{
		ID: "exportAllState", Records: true, Summary: "Returns all state of a script, with one entry in each line.",
		Answers: []api.Answer{{Status: http.StatusOK, Doc: "The entries.", Types: []string{api.Lines}}, api.NotFound},
	}
	exportStateOperation = api.Operation{
		ID: "exportState", Records: true, Summary: "Returns a state of a script, with one entry in each line.",
		Params:  []api.Param{{Name: "name", Doc: "The name of the state."}},
		Answers: []api.Answer{{Status: http.StatusOK, Doc: "The entries.", Types: []string{api.Lines}}, noState},
	}
	setStateOperation = api.Operation{
		ID: "setState", Summary: "Sets a key of a state, or adds a value to a queue.",
		Params: []api.Param{{Name: "name", Doc: "The name of the state."}, keyParam, {Name: "value", Doc: "The value as JSON."}},
		Answers: []api.Answer{{Status: http.StatusOK, Doc: "The key was set."},
			api.Refused(http.StatusBadRequest, "The value is invalid, or the state does not have values of this kind."), noState},
	}
	deleteStateOperation = api.Operation{
		ID: "deleteState", Summary: "Deletes a key of a state, or all entries.",
		Params:  []api.Param{{Name: "name", Doc: "The name of the state."}, {Name: "key", Doc: "A key; by default, all entries."}},
		Answers: []api.Answer{{Status: http.StatusOK, Doc: "The key was deleted."}, noState},
	}
	listQuarantineOperation = api.Operation{
		ID: "listQuarantine", Records: true, Summary: "Lists the entries in the quarantine of a script.",
		Answers: []api.Answer{api.OK("The entries.", QuarantineList{}), api.NotFound},
	}
	getQuarantineOperation = api.Operation{
		ID: "getQuarantine", Records: true, Summary: "Returns an entry of the quarantine of a script with its data.",
		Params: []api.Param{{Name: "entry", Doc: "The number of the entry."}},
		Answers: []api.Answer{api.OK("The entry.", QuarantineData{}), api.Refused(http.StatusBadRequest, "The number is invalid."),
			api.Refused(http.StatusNotFound, "There is no such node or entry.")},
	}
	dropOperation = api.Operation{
		ID: "dropQuarantine", Summary: "Removes entries from the quarantine of a script.", Body: QuarantineRequest{},
		Answers: []api.Answer{api.OK("The outcome for each entry.", []QuarantineResult{}), api.Refused(http.StatusBadRequest, "The request is invalid."), api.NotFound},
	}
	replayOperation = api.Operation{
		ID: "replayQuarantine", Records: true, Summary: "Processes entries of the quarantine of a script again.", Body: QuarantineRequest{},
		Answers: []api.Answer{api.OK("The outcome for each entry.", []QuarantineResult{}), api.Refused(http.StatusBadRequest, "The request is invalid."), api.NotFound,
			api.Refused(http.StatusUnprocessableEntity, "The script of the request cannot be used.")},
	}
	historyOperation = api.Operation{
		ID: "getVersions", Summary: "Returns the versions of the script that were active on a node.",
		Answers: []api.Answer{api.OK("The versions.", versions.History{}), noHistory},
	}
	diffOperation = api.Operation{
		ID: "compareVersions", Summary: "Returns the files of a version and of the running one.",
		Params:  []api.Param{versionParam},
		Answers: []api.Answer{api.OK("The files.", Comparison{}), noHistory, api.Refused(http.StatusConflict, "There is no such version, or several.")},
	}
	rollbackOperation = api.Operation{
		ID: "rollback", Summary: "Returns a node to an older version of its script, or ends its canary.",
		Text:    "The node stays on the version until its files change or it is unpinned. Without `version`, a canary is rolled back if there is one.",
		Params:  []api.Param{versionParam},
		Answers: []api.Answer{api.OK("The versions before and after.", Switch{}), noHistory, api.Refused(http.StatusConflict, "There is no such version, or it already runs.")},
	}
	unpinOperation = api.Operation{
		ID: "unpin", Summary: "Returns a node to the version of its files.",
		Answers: []api.Answer{api.OK("The versions before and after.", Switch{}), noHistory, api.Refused(http.StatusConflict, "The node is not pinned to a version.")},
	}
	canaryOperation = api.Operation{
		ID: "decideCanary", Summary: "Promotes or rolls back the canary of a node.",
		Params: []api.Param{{Name: "decision", Doc: "promote or rollback"}},
		Answers: []api.Answer{api.Plain("The decision was followed; the text describes the change."), api.Refused(http.StatusNotFound, "There is no such node or decision."),
			api.Refused(http.StatusConflict, "There is no canary.")},
	}
	testsOperation = api.Operation{
		ID: "runTests", Effect: api.Nothing, Summary: "Runs the tests of the script of a node.",
		Text: "The tests are the test file next to the script and the examples in its header comment, as they are on disk now. The outcome changes nothing. " +
			"They may take as long as before a reload (`--scripts.test-limit`). A report has at most 1,000 tests of a file; long texts are shortened.",
		Answers: []api.Answer{api.OK("The outcome, also if tests failed, and the lines that they ran.", TestReport{}),
			api.Refused(http.StatusNotFound, "There is no such node, its script ships with weir, or its file cannot be read."),
			api.Refused(http.StatusConflict, "The tests of the node run already.")},
	}
	debugOperation = api.Operation{
		ID: "debug", Records: true, Summary: "Debugs a copy of a script with the Debug Adapter Protocol.",
		Text: "The body is the stream of the client's messages, which may not end before the session does; the response is the stream of weir's messages. " +
			"The session ends when the client disconnects, the node is removed or weir stops.",
		Params: []api.Param{{Name: "where", Doc: "An expression; only batches with a record for which it is true are passed to the copy."}},
		Answers: []api.Answer{{Status: http.StatusOK, Doc: "The messages.", Types: []string{"application/octet-stream"}},
			api.Refused(http.StatusBadRequest, "where is invalid."), api.NotFound,
			api.Refused(http.StatusConflict, "The node is being debugged already, or is not a transform.")},
	}
	playgroundStartOperation = api.Operation{
		ID: "startPlayground", Summary: "Returns the script that a node runs, and the text on disk that weir has not accepted.",
		Answers: []api.Answer{api.OK("The script.", PlaygroundStart{}), api.NotFound},
	}
	playgroundOperation = api.Operation{
		ID: "play", Records: true, Effect: api.Nothing, Summary: "Runs another text as the script of a node on given records, without effect.",
		Text: "The script has the arguments of the node and a copy of its state. It sends nothing, changes nothing and reaches no external systems: requests and commands get recent answers of the node. " +
			"An error of the script is a part of the result.",
		Body:    PlaygroundRequest{},
		Answers: []api.Answer{api.OK("The result.", PlaygroundResult{}), api.Refused(http.StatusBadRequest, "The request is invalid."), api.NotFound},
	}
	writeSourceOperation = api.Operation{
		ID: "writeSource", Writes: true, Summary: "Writes the file of the script of a node, or a test next to it.",
		Text: "The file is replaced atomically and keeps its owner and permissions. The reload that follows is that of any other change: if a test fails, the running version stays. " +
			"weir writes only the file of the script itself and tests in its folder, in the folder of scripts. A file that exists must have the text `replaces`.",
		Body: SourceWrite{},
		Answers: []api.Answer{api.Plain("The file was written."), api.Refused(http.StatusBadRequest, "The request is invalid."),
			api.Refused(http.StatusForbidden, "The block `ui` does not allow it, the script ships with weir, the file is outside of the folder of scripts, or it cannot be written."), api.NotFound,
			{Status: http.StatusConflict, Doc: "The file has another text than `replaces`, and was not written.", Types: []string{api.JSON}, Value: SourceConflict{}}},
	}
	profileOperation = api.Operation{
		ID: "profile", Summary: "Takes a profile of the lines of a script.",
		Params: []api.Param{
			{Name: "seconds", Type: "integer", Doc: "The duration, from 1 to 300; 10 by default."},
			{Name: "format", Enum: []string{formatPprof, formatJSON}, Doc: "The form of the profile: for `go tool pprof`, which is the default, or the time of each line as JSON."},
		},
		Answers: []api.Answer{{Status: http.StatusOK, Doc: "The profile.", Types: []string{"application/octet-stream", api.JSON}, Value: LineProfile{}},
			api.Refused(http.StatusBadRequest, "A parameter is invalid."), api.NotFound, api.Refused(http.StatusConflict, "The node is being profiled already.")},
	}
)
