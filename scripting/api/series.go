package api

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// series is the type of s in the hook series.
func (t *Table) series() {
	t.Series.Doc = "What the hook series decides about: labels and metadata, no value, as the answer is remembered for the series. It ends with its hook."
	t.Series.Fields = []scripting.Param{
		settable(text("name", "The name of the metric.")),
		settable(object("labels", t.Labels, "The labels. Setting it to a table replaces all of them.")),
		text("type", `The metric's type: "counter", "gauge", "histogram", "summary" and so on, "" when it is not known.`),
		text("help", "The metric's help."),
		text("unit", "The metric's unit."),
	}
	t.Series.Methods = []scripting.Function{{
		Name: "drop", Doc: "Drops the series: no sample of it goes on.",
		Op: does(operation.Free, dropSeries),
		Uses: []scripting.Use{{
			Hook: "series", Lua: `if s.labels.env == "dev" then return s:drop() end`, JS: `if (s.labels.env === "dev") s.drop();`,
			Input: "up{env=\"dev\"} 1\nup{env=\"prod\"} 1\n", Output: "up{env=\"prod\"} 1\n",
		}},
	}}
}

// dropSeries drops the series or the stream.
func dropSeries(c *operation.Call) error {
	c.Series.Drop()
	return nil
}
