package main

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/natives"
)

// TestCompletions: each name has its owner and the spelling of the language.
func TestCompletions(t *testing.T) {
	names := completions(func() []component.Catalog { return []component.Catalog{component.NewList(natives.All()...)} })
	for _, c := range []struct{ of, owner, name, call string }{
		{"lua", "batch", "drop_where", "batch:drop_where(where)"},
		{"lua", "record", "value", "value"},
		{"lua", "series", "name", "name"},
		{"lua", "ctx", "emit", "ctx.emit(record)"},
		{"lua", "ctx.log", "info", "ctx.log.info(message, fields?)"},
		{"lua", "weir", "transform", "weir.transform(definition)"},
		{"lua", "weir.arg", "string", "weir.arg.string(options?)"},
		{"lua", "json", "decode", "json.decode(s)"},
		{"lua", "", "weir", "weir"},
		{"js", "batch", "dropWhere", "batch.dropWhere(where)"},
		{"js", "ctx", "batchId", "ctx.batchId()"},
		{"js", "arg", "string", "arg.string(options?)"},
		{"js", "", "defineTransform", "defineTransform(definition)"},
		{"prometheus.relabel", "", "rule", "block"},
		{"prometheus.relabel", "rule", "source_labels", "list(string)"},
		{"loki.process", "", "stage.match", "block"},
		{"loki.process", "stage.match", "selector", "string"},
		{"loki.process", "stage.json", "expressions", "map(string)"},
	} {
		all, ok := names(c.of)
		i := slices.IndexFunc(all, func(n http.Completion) bool { return n.Of == c.owner && n.Name == c.name })
		switch {
		case !ok || i < 0:
			t.Errorf("%s: there is no %s of %q", c.of, c.name, c.owner)
		case all[i].Call != c.call || all[i].Doc == "":
			t.Errorf("%s: got %+v, want the call %s", c.of, all[i], c.call)
		}
	}
	for _, of := range []string{"python", "", "no.such"} {
		if all, ok := names(of); ok {
			t.Errorf("%q has %d names", of, len(all))
		}
	}
}
