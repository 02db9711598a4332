package registry

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// Tested is a saved script with tests.
type Tested struct {
	Script scripting.File
	Test   scripting.File // zero: there is none, only examples in the script
	Folder Folder
}

// Folder is a folder of scripts: what a test file looks into.
type Folder struct {
	Dir       string // absolute
	Namespace string
	Catalog   component.Catalog
	// Env is what a file in the folder may require.
	Env func(l scripting.Language) scripting.Env
}

// FolderOf returns the user's folder that c was made of by NewCatalog; ok is
// false for another catalog.
func FolderOf(c component.Catalog) (f Folder, ok bool) {
	own, ok := c.(*catalog)
	if !ok {
		return f, false
	}
	return own.folder(), true
}

// TestFiles returns the names that a test of a script may have, whatever its
// language: x_test.lua, x.test.lua, x_test.js and so on.
func TestFiles(base string, langs []scripting.Language) (names []string) {
	for _, l := range langs {
		if _, ok := l.(scripting.Tester); !ok {
			continue
		}
		for _, ext := range l.Extensions() {
			names = append(names, base+"_test"+ext, base+".test"+ext)
		}
	}
	return names
}
