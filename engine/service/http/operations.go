package http

import (
	nethttp "net/http"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/tap"
)

// The descriptions of the routes in the table of routes.go.
var (
	// webUI is for pages and their parts, which are not a part of the API.
	webUI = api.Operation{}
	// profiles is for the profiles of Go, which the package net/http/pprof describes.
	profiles = api.Operation{Effect: api.Nothing}
	// describedByComponents is for handlers of components that describe themselves.
	describedByComponents = api.Operation{}

	documentOperation = api.Operation{
		ID: "getDocument", Summary: "Returns the OpenAPI document of the API.",
		Answers: []api.Answer{{Status: nethttp.StatusOK, Doc: "The document, in OpenAPI 3.1.", Types: []string{api.JSON}}},
	}
	readyOperation = api.Operation{
		ID: "getReady", Summary: "Reports whether weir runs a config.",
		Answers: []api.Answer{api.Plain("weir runs a config."), api.Refused(nethttp.StatusServiceUnavailable, "weir does not run a config yet.")},
	}
	healthyOperation = api.Operation{
		ID: "getHealthy", Summary: "Reports whether all nodes are healthy.",
		Answers: []api.Answer{api.Plain("All nodes are healthy."), api.Refused(nethttp.StatusServiceUnavailable,
			"Some nodes are not healthy. With credentials, the response contains their names and the reasons, otherwise their number.")},
	}
	metricsOperation = api.Operation{
		ID: "getMetrics", Summary: "Returns weir's own metrics.",
		Text:    "The format is that of Prometheus, or OpenMetrics if the request accepts it.",
		Answers: []api.Answer{{Status: nethttp.StatusOK, Doc: "The metrics.", Types: []string{api.Text, "application/openmetrics-text"}}},
	}
	reloadOperation = api.Operation{
		ID: "reload", Summary: "Reloads the config and the scripts.",
		Text:   "With `Accept: application/json`, the response has the records of the changes that the request caused; otherwise it has their messages.",
		Params: []api.Param{{Name: "wait", Type: "boolean", Doc: "Whether to wait for canaries as well."}},
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The change was made, also if some nodes stayed on their last good version.", Types: []string{api.JSON, api.Text}, Value: Answer{}},
			{Status: nethttp.StatusBadRequest, Doc: "The config was refused, and nothing was changed.", Types: []string{api.JSON, api.Text}, Value: Answer{}},
			api.Refused(nethttp.StatusServiceUnavailable, "weir is starting or stops."),
		},
	}
	previewOperation = api.Operation{
		ID: "previewReload", Effect: api.Nothing, Summary: "Returns what a reload would change, and changes nothing.",
		Params: []api.Param{
			{Name: "config", Doc: "The absolute path of another config. It can be given only over the control socket."},
			{Name: "scripts", Doc: "The absolute path of another folder of scripts. It can be given only over the control socket."},
		},
		Answers: []api.Answer{
			api.OK("The nodes that would change.", service.Preview{}),
			api.Refused(nethttp.StatusBadRequest, "The config would be refused."),
			api.Refused(nethttp.StatusForbidden, "A parameter is given, and the request does not come over the control socket."),
			api.Refused(nethttp.StatusServiceUnavailable, "weir is starting or stops, or the preview takes longer than 30 seconds."),
		},
	}
	openLinkOperation = api.Operation{
		ID: "openLink", Effect: api.Change, Summary: "Starts a session of the web UI with the token of a link, and redirects to it.",
		Params: []api.Param{{Name: "token", Required: true, Doc: "The token. It can be used once, within 10 minutes."}},
		Answers: []api.Answer{
			{Status: nethttp.StatusSeeOther, Doc: "The session has started. Location is its first page."},
			api.Refused(nethttp.StatusUnauthorized, "The link has been used or has expired."),
			api.Refused(nethttp.StatusForbidden, "The request comes over a network in plaintext."),
		},
	}
	newLinkOperation = api.Operation{
		ID: "newLink", Summary: "Returns a link that opens the web UI once, within 10 minutes.",
		Answers: []api.Answer{api.Plain("The link."), api.Refused(nethttp.StatusNotFound, "weir does not listen on a TCP port.")},
	}
	docsOperation = api.Operation{
		ID: "listDocs", Summary: "Returns the table of contents of the documentation, and searches it.",
		Params:  []api.Param{{Name: "search", Doc: "Words. The response then also has the first 50 sections that contain all of them."}},
		Answers: []api.Answer{api.OK("The pages in reading order.", DocList{})},
	}
	docOperation = api.Operation{
		ID: "getDoc", Summary: "Returns a page of the documentation as HTML.",
		Params:  []api.Param{{Name: "page", Doc: "The name of the page, such as `operating`; `index` lists all pages."}},
		Answers: []api.Answer{api.OK("The page.", Doc{}), api.Refused(nethttp.StatusNotFound, "There is no such page.")},
	}
	manualOperation = api.Operation{
		ID: "getManual", Summary: "Returns the manual of a component.",
		Params:  []api.Param{{Name: "name", Doc: "The name of its block, such as `prometheus.scrape`."}},
		Answers: []api.Answer{api.OK("The manual.", Manual{}), api.Refused(nethttp.StatusNotFound, "There is no such component, or it has an error.")},
	}
	completionsOperation = api.Operation{
		ID: "listCompletions", Summary: "Returns the names that an editor can complete in a script or in a block.",
		Params:  []api.Param{{Name: "of", Doc: "The ending of the files of a language of scripts, or the name of a component, such as `prometheus.relabel`."}},
		Answers: []api.Answer{api.OK("The names.", Completions{}), api.Refused(nethttp.StatusNotFound, "There is no such language or component.")},
	}
	statusOperation = api.Operation{
		ID: "getStatus", Summary: "Returns the state of weir and of all nodes.",
		Text:   "Without credentials, the response has only the names and states of nodes.",
		Params: []api.Param{{Name: "node", Many: true, Doc: "The ID of a node or a service; at most 100. The response then contains only these, as far as they exist."}},
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The state.", Types: []string{api.JSON}, Value: Status{}, Reduced: PublicStatus{}},
			api.Refused(nethttp.StatusBadRequest, "The request names too many nodes."),
		},
	}
	configOperation = api.Operation{
		ID: "getConfig", Summary: "Returns the text of the config that runs, with the modules that it imports.",
		Text: "Secrets are masked. With `Accept: text/plain`, the response has the files one after another.",
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The files.", Types: []string{api.JSON, api.Text}, Value: RunningConfig{}},
			api.Refused(nethttp.StatusServiceUnavailable, "weir is starting or stops, or is busy for more than 30 seconds."),
		},
	}
	checkOperation = api.Operation{
		ID: "checkConfig", Summary: "Checks the config on disk, as `weir check` does, and formats it.",
		Text: "Secrets are masked in the texts and in the messages. Lines are those of the file.",
		Answers: []api.Answer{
			api.OK("The files on disk and what is wrong with them.", CheckedConfig{}),
			api.Refused(nethttp.StatusServiceUnavailable, "weir is starting, or cannot read the folder of scripts."),
		},
	}
	auditOperation = api.Operation{
		ID: "getAudit", Summary: "Returns the last 200 changes that were requested over the API, the oldest first.",
		Answers: []api.Answer{api.OK("The changes.", Audit{}), api.Refused(nethttp.StatusNotFound, "This weir has no audit log.")},
	}
	logOperation = api.Operation{
		ID: "getLog", Records: true, Summary: "Returns the last lines of the log, at most 512 KiB.",
		Answers: []api.Answer{api.Plain("The lines, in the format of the block logging.")},
	}
	eventsOperation = api.Operation{
		ID: "followStatus", Summary: "Sends the state of all nodes and its changes as server-sent events.",
		Text: "The first event is `status`. `change` follows at most twice a second, if a node has changed. A client that is 8 events behind skips events and gets `status` again. weir sends a comment every 15 seconds, and disconnects a client that does not read for 10 seconds.",
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The events.", Types: []string{api.EventStream}, Events: append([]api.Event{
				{Name: "status", Doc: "The state of all nodes", Value: LiveStatus{}},
				{Name: "change", Doc: "The nodes that have changed", Value: LiveStatus{}},
			}, reloadEvents...)},
			api.Refused(nethttp.StatusServiceUnavailable, "100 clients follow the state already, or weir is starting or stops."),
		},
	}
	graphOperation = api.Operation{
		ID: "getGraph", Summary: "Returns the graph: the nodes, their groups, and the flow of data between them with its rates.",
		Answers: []api.Answer{api.OK("The graph.", flowchart.Graph{})},
	}
	recentOperation = api.Operation{
		ID: "getHistory", Summary: "Returns the rates, the queues and the changes of health of the last hour.",
		Text: "weir keeps a point every 10 seconds in memory. Without `node`, the response has the totals and the health of all nodes.",
		Params: []api.Param{
			{Name: "node", Many: true, Doc: "The ID of a node to include; at most 100."},
			{Name: "since", Doc: "The time after which points and changes are included, in RFC 3339 or as Unix seconds; by default, the last hour."},
		},
		Answers: []api.Answer{
			api.OK("The history.", history.History{}), api.Refused(nethttp.StatusBadRequest, "A parameter is invalid."),
			api.Refused(nethttp.StatusNotFound, "There is no such node, and there was none in the last hour."),
		},
	}
	reloadsOperation = api.Operation{
		ID: "getReloads", Summary: "Returns the last 100 changes of the running graph, the oldest first.",
		Answers: []api.Answer{api.OK("The changes.", Reloads{})},
	}
	reloadEventsOperation = api.Operation{
		ID: "followReloads", Summary: "Sends the steps of reloads as server-sent events.",
		Text: "A client that sends the header `Last-Event-ID` first gets the events that it missed, as far as they are among the last 500. weir sends a comment every 15 seconds and disconnects a client that does not read for 10 seconds.",
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The events.", Types: []string{api.EventStream}, Events: reloadEvents},
			api.Refused(nethttp.StatusServiceUnavailable, "20 clients follow the events already, or weir is starting."),
		},
	}
	batchOperation = api.Operation{
		ID: "getBatch", Records: true, Summary: "Returns the last batch of a node in the text form.",
		Params: []api.Param{
			{Name: "of", Enum: []string{"in", "out"}, Doc: "The batch that arrived or that was sent; by default the one that was sent, if there is one."},
			{Name: "rows", Type: "integer", Doc: "The maximum number of samples or lines, from 1 to 10000; 200 by default."},
		},
		Answers: []api.Answer{api.Plain("The batch; empty if there was none."), api.Refused(nethttp.StatusBadRequest, "A parameter is invalid."), api.NotFound},
	}
	tapOperation = api.Operation{
		ID: "tap", Records: true, Summary: "Follows the records that pass through a node.",
		Text: "The response ends after 10 minutes, 64 MiB or `limit` records, or when the node is removed; its last line is the reason.",
		Params: []api.Param{
			{Name: "side", Enum: []string{"in", "out", "diff"}, Doc: "The input of the node, its output, or the difference; by default `out` if it sends to other nodes, and `in` otherwise."},
			{Name: "where", Doc: "An expression that is true for the records to show."},
			{Name: "limit", Type: "integer", Doc: "The number of records after which the response ends."},
			{Name: "rate", Type: "integer", Doc: "The most records a second, from 1 to 1000; by default 20, or 1000 if there is a limit. Later records of a second are not examined."},
			{Name: "format", Enum: []string{"text", "json", "exposition", tap.FormatCalls}, Doc: "The form of the records; `json` has one object in each line, and `calls`, with `side=diff`, one call of the node."},
		},
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The records.", Types: []string{api.Text, api.Lines}, Value: tap.Line()},
			api.Refused(nethttp.StatusBadRequest, "A parameter is invalid, or the node contains nodes."), api.NotFound,
			api.Refused(nethttp.StatusServiceUnavailable, "10 taps run already, or weir is starting."),
		},
	}
	topOperation = api.Operation{
		ID: "top", Summary: "Follows the CPU time and the counters of all nodes.",
		Text: "The first line comes immediately, the others at an interval. weir measures CPU time, calls, errors and bytes only while a client follows.",
		Params: []api.Param{
			{Name: "interval", Doc: "The interval of lines, from `500ms` to `1m`; `2s` by default."},
			{Name: "lines", Type: "integer", Doc: "The number of lines after which the response ends."},
		},
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The counters.", Types: []string{api.Lines}, Value: Usage{}},
			api.Refused(nethttp.StatusBadRequest, "A parameter is invalid."),
			api.Refused(nethttp.StatusServiceUnavailable, "10 clients follow already, or weir is starting."),
		},
	}
	whyOperation = api.Operation{
		ID: "why", Records: true, Summary: "Follows records through the nodes below a node, or with `*` through all nodes.",
		Text: "Each record that matches at any of the nodes is a line with its path: what each node did to it, and which steps changed or dropped it. The last line is the reason why the response ended.",
		Params: []api.Param{
			{Name: "where", Doc: "An expression that is true for the records to follow. It is required."},
			{Name: "limit", Type: "integer", Doc: "The number of records after which the response ends, from 1 to 100, or to 1000 for targets; 3 by default."},
			{Name: "seconds", Type: "integer", Doc: "The time after which the response ends, from 1 to 600; 30 by default."},
			{Name: "targets", Type: "boolean", Doc: "Whether to follow targets instead of records: from the discovery to the nodes that scrape them, as they are now. The expression is true for the labels of a target, at any node."},
		},
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The paths.", Types: []string{api.Lines}, Value: tap.PathLine()},
			api.Refused(nethttp.StatusBadRequest, "A parameter is invalid, or the node contains nodes."), api.NotFound,
			api.Refused(nethttp.StatusServiceUnavailable, "10 taps run already, or weir is starting."),
		},
	}
	playgroundBlockOperation = api.Operation{
		ID: "startBlockPlayground", Records: true, Summary: "Returns the block of a node, as an editor begins with it.",
		Text:    "Nodes whose status has `playground` have it: those of components that only transform records or targets.",
		Answers: []api.Answer{api.OK("The block.", PlaygroundStart{}), api.Refused(nethttp.StatusNotFound, "There is no such node, or it has no playground.")},
	}
	playBlockOperation = api.Operation{
		ID: "playBlock", Records: true, Effect: api.Nothing, Summary: "Runs a copy of a node with another text of its block on given records, without effect.",
		Text:    "The copy has no state of the node, and sends its output to the response. An error of the block is a part of the result.",
		Body:    PlaygroundRequest{},
		Answers: []api.Answer{api.OK("The result.", PlaygroundResult{}), api.Refused(nethttp.StatusBadRequest, "The request is invalid."), api.Refused(nethttp.StatusNotFound, "There is no such node, or it has no playground.")},
	}
	componentOperation = api.Operation{
		ID: "component", Summary: "Passes a request to the handler of a component, such as the metrics of an exporter.",
		Text:   "All methods are passed. weir removes its own credentials from the request. The component decides who may use it.",
		Params: []api.Param{{Name: "path", Doc: "The ID of the node, a slash, and a path of the component."}},
		Answers: []api.Answer{
			{Status: nethttp.StatusOK, Doc: "The response of the component.", Types: []string{"*/*"}},
			api.Refused(nethttp.StatusNotFound, "There is no such component, or it serves nothing."),
			api.Refused(nethttp.StatusForbidden, "A page of another origin makes the request."),
			api.Refused(nethttp.StatusServiceUnavailable, "weir is starting."),
		},
	}
)

// reloadEvents are the events of reloads.
var reloadEvents = []api.Event{
	{Name: "reload", Doc: "A change was made or refused", Value: service.Reload{}},
	{Name: "step", Doc: "A step of a new version of a node began", Value: Step{}},
}

// serveDocument serves the OpenAPI document.
func (s *Service) serveDocument(w nethttp.ResponseWriter, _ *nethttp.Request) {
	if s.o.Document == nil {
		nethttp.Error(w, "this build has no OpenAPI document", nethttp.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(s.o.Document) // an error means that the client is gone
}
