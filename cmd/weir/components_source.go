package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripts"
)

// printSource prints the file of a script that ships with weir, or its test.
// It never reads the scripts folder: a shell that redirects the output there has
// already created an empty file of that name.
func printSource(t *terminal, name string, test bool) error {
	script, tests := shippedFiles(name)
	if script == "" {
		return notShipped(name)
	}
	file, hint := script, fmt.Sprintf("A copy in scripts/%s replaces the script that ships with weir.", script)
	switch {
	case test && tests == "":
		return fmt.Errorf("%s ships without a test file", name)
	case test:
		file, hint = tests, fmt.Sprintf("The test belongs in scripts/%s, next to the script; 'weir test' runs it.", tests)
	case tests != "":
		hint += fmt.Sprintf(" Its test: weir components --source --test %s", name)
	}
	text, err := fs.ReadFile(scripts.FS, file)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", file, err)
	}
	if _, err := t.out.Write(text); err != nil {
		return fmt.Errorf("cannot write the source: %w", err)
	}
	_, err = fmt.Fprintln(t.err, hint)
	return err
}

// notShipped returns the error for a name without a source to print.
func notShipped(name string) error {
	catalogs, err := usable("scripts")
	if err != nil {
		return cannotStart(err)
	}
	defer closePlugins(catalogs)
	if inner[name] != "" {
		name = inner[name]
	}
	r, ok := lookup(catalogs, name)
	switch {
	case !ok && slices.Contains(folders(), strings.TrimSuffix(name, ".")):
		return fmt.Errorf("%s is the first part of several names; name one script, 'weir components %s' lists them", name, name)
	case !ok:
		return noComponent(name, shippedNames())
	case len(r.Sources) > 0:
		return fmt.Errorf("%s does not ship with weir: its source is %s", name, config.Printable(r.Sources[0]))
	}
	return fmt.Errorf("%s is written in Go and compiled into weir, so it has no script to print; 'weir components %s' prints its manual", name, name)
}

// shippedFiles returns the paths in scripts.FS of a script that ships with weir
// and of its test, or "" for a file that does not exist.
func shippedFiles(name string) (script, test string) {
	base := strings.ReplaceAll(name, ".", "/")
	entries, _ := fs.ReadDir(scripts.FS, path.Dir(base)) // if the folder does not exist, there is no script
	for _, e := range entries {
		file := path.Join(path.Dir(base), e.Name())
		switch rest, ok := strings.CutPrefix(file, base); {
		case !ok || e.IsDir():
		case strings.HasPrefix(rest, "_test.") || strings.HasPrefix(rest, ".test."):
			test = file
		case rest == path.Ext(file):
			script = file
		}
	}
	if strings.HasPrefix(script, "lib/") { // modules are not components
		return "", ""
	}
	return script, test
}

// shippedNames returns the names of the scripts that ship with weir, sorted.
func shippedNames() (names []string) {
	files, _ := fs.Glob(scripts.FS, "*/*") // the pattern is valid
	for _, f := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(f, path.Ext(f)), "/", ".")
		if script, _ := shippedFiles(name); script == f {
			names = append(names, name)
		}
	}
	return names
}

// folders returns the first parts of the names of the scripts that ship with
// weir.
func folders() (out []string) {
	for _, name := range shippedNames() {
		out = append(out, name[:strings.IndexByte(name, '.')])
	}
	return slices.Compact(out)
}
