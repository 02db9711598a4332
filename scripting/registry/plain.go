package registry

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// NewPlain compiles a plain file: name is where it lies, "-" for a text that
// lies nowhere. The modules it requires are in o.Modules or below lib in
// o.UserDir.
func NewPlain(o Options, name, text string) (scripting.Plain, error) {
	made, err := NewCatalog(o)
	if err != nil {
		return nil, err
	}
	c := made.(*catalog)
	lang, _ := c.language(name)
	if lang == nil && filepath.Ext(name) == "" {
		lang = o.Languages[0]
	}
	ev, ok := lang.(scripting.Evaluator)
	if !ok {
		var known []string
		for _, l := range o.Languages {
			for _, ext := range l.Extensions() {
				known = append(known, strconv.Quote(ext))
			}
		}
		return nil, fmt.Errorf("cannot run %s: scripts end in %s", name, strings.Join(known, " or "))
	}
	if len(text) > scripting.MaxFileSize {
		return nil, fmt.Errorf("cannot run %s: it is larger than %d KiB", name, scripting.MaxFileSize>>10)
	}
	f := scripting.File{Name: filepath.ToSlash(name), Text: text}
	env := c.folder().Env(ev)
	if name == "-" {
		env.Import = func(_ scripting.File, path string) (scripting.File, error) {
			return scripting.File{}, fmt.Errorf("cannot import %q: the importing text is not a file, so the relative path cannot be resolved", path)
		}
		return ev.Plain(f, env)
	}
	if f.Path, err = filepath.Abs(name); err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", name, err)
	}
	beside, err := NewCatalog(Options{Languages: o.Languages, UserDir: filepath.Dir(f.Path)})
	if err != nil {
		return nil, err
	}
	near, inFolder := beside.(*catalog).folder().Env(ev).Import, env.Import
	env.Import = func(from scripting.File, path string) (scripting.File, error) {
		if c.dir != "" && strings.HasPrefix(from.Path, c.dir+string(filepath.Separator)) {
			return inFolder(from, path)
		}
		return near(from, path)
	}
	return ev.Plain(f, env)
}
