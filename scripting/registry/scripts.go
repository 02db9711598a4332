package registry

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// ScriptInfo is a script of a catalog.
type ScriptInfo struct {
	Name string // of the component
	File scripting.File
	Def  *scripting.Definition // nil: Err says why there is none
	Err  error
	// Program is what was compiled; nil with Err.
	Program scripting.Program
}

// Scripts returns all scripts of a catalog that NewCatalog made, in the order
// of their names; nothing of another catalog. Those that are broken have Err.
func Scripts(c component.Catalog) []ScriptInfo {
	own, ok := c.(*catalog)
	if !ok {
		return nil
	}
	var out []ScriptInfo
	for _, name := range own.Names() {
		if info, ok := own.info(name); ok {
			out = append(out, info)
		}
	}
	return out
}

func (c *catalog) info(name string) (ScriptInfo, bool) {
	r, ok := c.Lookup(name)
	if !ok {
		return ScriptInfo{}, false
	}
	info := ScriptInfo{Name: name, Err: r.Err}
	if s := c.script(name); s != nil {
		info.File, info.Def, info.Program = s.File, s.Definition, s.Program
	}
	return info, true
}
