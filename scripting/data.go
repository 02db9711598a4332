package scripting

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// dataExtensions are the extensions of data files.
var dataExtensions = []string{".json", ".yaml", ".yml"}

// IsData reports whether a file name is that of a data file, which Data reads,
// and not of a script.
func IsData(name string) bool { return slices.Contains(dataExtensions, path.Ext(name)) }

// Data reads a data file with the function decode of the module json or yaml.
// An error in its text is an *Error.
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
