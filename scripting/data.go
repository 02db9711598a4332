package scripting

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// dataExtensions are of files that are values and no scripts.
var dataExtensions = []string{".json", ".yaml", ".yml"}

// IsData reports whether a file of this name is a value, which Data reads, and no
// script.
func IsData(name string) bool { return slices.Contains(dataExtensions, path.Ext(name)) }

// Data reads a data file by the function decode of the module json or yaml. What
// is wrong with its text is an *Error.
func (e Env) Data(f File) (Value, error) {
	ext := strings.TrimPrefix(path.Ext(f.Name), ".")
	if ext == "yml" {
		ext = "yaml"
	}
	i := slices.IndexFunc(e.Modules, func(m *Module) bool { return m.Name == ext })
	if i < 0 {
		return nil, fmt.Errorf("cannot read %s: there is no module %s", f.Name, ext)
	}
	decode, ok := e.Modules[i].Func("decode")
	if !ok {
		return nil, fmt.Errorf("cannot read %s: the module %s does not decode", f.Name, ext)
	}
	v, err := decode.Call(nil, []Value{f.Text})
	if err != nil {
		return nil, f.Error(0, HookLoad, fmt.Errorf("cannot read the data: %w", err))
	}
	return v, nil
}
