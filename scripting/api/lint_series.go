package api

import (
	"slices"

	"github.com/weir-run/weir/scripting"
)

// CachedHook returns the hook that is called once for each series, or for each stream,
// instead of the hook p for batches, and the type of its parameter. It is "" if p is not
// such a hook, or if the script has the other hook already.
func (r *Rules) CachedHook(p *scripting.Param) (name string, of *scripting.ObjectType) {
	d := r.Def
	if d == nil || d.Kind != scripting.Transform || p.Call == nil || len(p.Call.Params) == 0 {
		return "", nil
	}
	switch of := p.Call.Params[0].Type; {
	case p.Name == "metrics" && of == r.Table.Batch && !d.Series:
		return "series", r.Table.Series
	case p.Name == "logs" && of == r.Table.Logs && !d.Stream:
		return "stream", r.Table.Stream
	}
	return "", nil
}

// HasField reports whether a type has a field, and whether a script can set it.
func (r *Rules) HasField(t *scripting.ObjectType, name string) (has, settable bool) {
	for i := range t.Fields {
		if r.Spell(t.Fields[i].Name) == name {
			return true, slices.Contains(Settable(r.spelt(t)), name)
		}
	}
	return false, false
}

// Cached reports whether a value is the same in all calls of a hook: it is ctx.args or
// in it, a function of a module without side effects, or a compiled pattern.
func (r *Rules) Cached(k *Known) bool {
	if k == nil {
		return false
	}
	re := r.Modules["re"]
	return k.Object == r.Table.Arguments || k.Module != nil && scripting.CachedModules[k.Module.Name] ||
		k.Object != nil && re != nil && slices.Contains(re.Types, k.Object)
}
