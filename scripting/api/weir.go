package api

import "github.com/weir-run/weir/scripting"

// weir is the module weir, and the keys of a definition.
func (t *Table) weir() {
	t.Keys = []scripting.Param{
		{Name: "args", Kind: scripting.KindMap, Optional: true, Doc: "Arguments of the block by name, each of a type of weir.arg. They are checked with line and column, and are ctx.args in the hooks."},
		callbackKey("series", "Asked once for each new series, and its answer is remembered: it may depend on labels and ctx.args only.",
			object("s", t.Series, "The series."), object("ctx", t.Remembered, "")),
		callbackKey("metrics", "Called for each batch. Records are kept unless they are dropped.",
			object("batch", t.Batch, "The batch."), object("ctx", t.Context, "")),
	}
	t.Weir = &scripting.Module{
		Name: "weir",
		Doc:  "Kinds of components and the types of their arguments.",
	}
}

func callbackKey(name, doc string, params ...scripting.Param) scripting.Param {
	return optional(callback(name, doc, scripting.Result{}, params...))
}
