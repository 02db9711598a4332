package api

import (
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// series defines the type of s in the hook series.
func (t *Table) series() {
	t.Series.Doc = "A series in the hook series. It has labels and metadata but no value, because the result is cached for the series. It is valid only while its hook runs."
	t.Series.Fields = []scripting.Param{
		settable(text("name", "The name of the metric.")),
		settable(object("labels", t.Labels, "The labels. Setting it to a table replaces all of them.")),
		text("type", `The metric's type: "counter", "gauge", "histogram", "summary" and so on, or "" if it is unknown.`),
		text("help", "The metric's help."),
		text("unit", "The metric's unit."),
	}
	t.Series.Methods = []scripting.Function{{
		Name: "drop", Doc: "Drops the series with all its samples.",
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
