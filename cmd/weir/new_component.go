package main

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weir/starter"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/registry"
)

func newComponentCommand(t *terminal) *cobra.Command {
	c := starter.Component{}
	var dir string
	cmd := &cobra.Command{
		Use:   "component NAMESPACE/NAME",
		Short: "Create a script, its test and an editor set-up",
		Long: `Create scripts/NAMESPACE/NAME.lua, .js or .ts, which is the component NAMESPACE.NAME,
and its test. Both are complete examples: they pass 'weir check' and 'weir test'.
Change them step by step into the component that you need.

Next to the scripts folder, the command creates an editor set-up if there is none: the
types that 'weir types' writes, the settings of the language server (.luarc.json) or
of TypeScript (tsconfig.json), the settings of StyLua or Prettier, and those of VS Code
for 'weir debug' (.vscode/launch.json and an extension without code).

--kind is the kind of the component:

  transform   changes or drops the records that it receives
  source      fetches or receives data; with --signal=metrics, the example polls an API,
              with --signal=logs, it receives HTTP requests
  sink        delivers records to an external system
  discovery   exports targets to scrape

Existing files are not changed. The scripts folder is ./scripts. If the working
directory is below a scripts folder that is next to a config, it is that folder.`,
		Example: `  weir new component ops/tidy
  weir new component shop/parse --lang=ts --signal=logs
  weir new component crm/inventory --kind=discovery`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return errors.New("name the component to create, such as 'weir new component ops/tidy'")
			case 1:
				return checkNew(cmd, c)
			}
			return fmt.Errorf("new component takes one name, not %d", len(args))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: failed(func(_ *cobra.Command, args []string) error {
			if err := checkNewPath(args[0]); err != nil {
				return cannotStart(err)
			}
			c.Path = args[0]
			scripts, err := newScriptsDir(dir)
			if err != nil {
				return cannotStart(err)
			}
			if err := createComponent(t, c, scripts); err != nil {
				return err
			}
			if err := createEditorSetup(t, c, scripts); err != nil {
				return err
			}
			_, err = fmt.Fprint(t.out, nextSteps(c, scripts))
			return err
		}),
	}
	f := cmd.Flags()
	languageFlag(cmd, &c.Language)
	f.StringVar(&c.Kind, "kind", starter.Kinds()[0], "kind of the component: "+strings.Join(starter.Kinds(), ", "))
	f.StringVar(&c.Signal, "signal", starter.Signals()[0], "what it processes: "+strings.Join(starter.Signals(), " or "))
	f.StringVar(&dir, "scripts", "", "folder of scripts (default: ./scripts)")
	return cmd
}

// languageFlag adds the flag --lang.
func languageFlag(cmd *cobra.Command, language *string) {
	cmd.Flags().StringVar(language, "lang", starter.Languages()[0], "language of the script: "+strings.Join(starter.Languages(), ", "))
}

// checkNew checks the values of the flags.
func checkNew(cmd *cobra.Command, c starter.Component) error {
	for _, f := range []struct {
		name, value string
		may         []string
	}{{"lang", c.Language, starter.Languages()}, {"kind", c.Kind, starter.Kinds()}, {"signal", c.Signal, starter.Signals()}} {
		if !slices.Contains(f.may, f.value) && cmd.Flags().Lookup(f.name) != nil {
			return fmt.Errorf("cannot use --%s=%s: it must be %s", f.name, f.value, strings.Join(f.may, ", "))
		}
	}
	if c.Kind == starter.Discovery && cmd.Flags().Changed("signal") {
		return errors.New("cannot use --signal with --kind=discovery: a discovery component exports targets and sends no records")
	}
	return nil
}

// The limits of the name of a new component: weir does not look for scripts in deeper
// folders, and file systems have a limit for names.
const (
	maxNewFolders = 8
	maxNewName    = 100
)

var newName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// checkNewPath checks the path of a new component, such as http/paths.
func checkNewPath(name string) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("cannot create a component with the name %q: %s", name, fmt.Sprintf(format, args...))
	}
	slashed := strings.ReplaceAll(name, ".", "/")
	switch {
	case name == "":
		return fail("the name is empty; write NAMESPACE/NAME, such as ops/tidy")
	case path.Ext(name) != "" && slices.ContainsFunc(languages(), func(l scripting.Language) bool { return slices.Contains(l.Extensions(), path.Ext(name)) }):
		return fail("write it without the extension, and choose the language with --lang")
	case strings.Contains(name, `\`):
		return fail("separate the namespace and the name with a slash")
	case path.IsAbs(name) || filepath.IsAbs(name):
		return fail("it must be relative to the scripts folder, such as ops/tidy")
	case !strings.Contains(name, "/") && strings.Contains(name, ".") && checkNewPath(slashed) == nil:
		return fail("separate the namespace and the name with a slash: %s", slashed)
	case !strings.Contains(name, "/"):
		return fail("it has no namespace; write NAMESPACE/NAME, such as ops/tidy")
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxNewFolders+1 {
		return fail("it has more than %d folders", maxNewFolders)
	}
	for i, part := range parts {
		switch {
		case part == "":
			return fail("a part of it is empty")
		case part == "." || part == "..":
			return fail("it must not contain %q", part)
		case part == "scripts":
			return fail("it is relative to the scripts folder, so leave out scripts/")
		case i == 0 && part == "lib":
			return fail("files in the folder lib are modules, not components")
		case strings.HasPrefix(part, "_"):
			return fail("weir ignores files and folders whose names begin with _")
		case part != strings.ToLower(part):
			return fail("use lower case")
		case !newName.MatchString(part):
			return fail("%q must contain only a to z, digits and _, and begin with a letter", part)
		case len(part) > maxNewName:
			return fail("a part of it is longer than %d bytes", maxNewName)
		case part == "null" || part == "true" || part == "false":
			return fail("%s is a value in configs", part)
		case i == len(parts)-1 && strings.HasSuffix(part, "_test"):
			return fail("files whose names end with _test are tests")
		}
	}
	return nil
}

// newScriptsDir returns the absolute path of the folder for a new script, which may not
// exist yet.
func newScriptsDir(flag string) (string, error) {
	dir, err := scriptsDir(flag, ".")
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the scripts folder: %w", err)
	}
	if flag != "" || exists(dir) {
		return dir, nil
	}
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		if filepath.Base(up) != "scripts" {
			continue
		}
		if configs, _ := filepath.Glob(filepath.Join(filepath.Dir(up), "*.alloy")); len(configs) > 0 { // an invalid pattern matches nothing
			return up, nil
		}
	}
	return dir, nil
}

// createComponent creates the script and its test, unless there is a component or a
// file with this name.
func createComponent(t *terminal, c starter.Component, scripts string) error {
	base := filepath.Join(scripts, filepath.FromSlash(c.Path))
	var names []string
	for _, l := range languages() {
		for _, ext := range l.Extensions() {
			names = append(names, base+ext)
		}
	}
	for _, name := range append(names, registry.TestFiles(base, languages())...) {
		if exists(name) {
			return fmt.Errorf("cannot create the component %s: %s exists", c.Name(), fromHere(name))
		}
	}
	for dir := filepath.Dir(base); len(dir) > len(scripts); dir = filepath.Dir(dir) {
		if !exists(dir) {
			continue
		}
		// weir does not read a script in a folder that is a link to a place outside.
		if err := files.Inside(scripts, dir); err != nil {
			return fmt.Errorf("cannot create the component %s: %w", c.Name(), err)
		}
		break
	}
	if shipped, _ := shippedFiles(c.Name()); shipped != "" {
		return fmt.Errorf("cannot create the component %s: it ships with weir; choose a different name, or change a copy: weir components --source %s > %s",
			c.Name(), c.Name(), fromHere(base+path.Ext(shipped)))
	}
	catalogs, err := usable(scripts)
	if err != nil {
		return cannotStart(err)
	}
	defer closePlugins(catalogs)
	if _, ok := lookup(catalogs, c.Name()); ok {
		return fmt.Errorf("cannot create the component %s: weir has a built-in component with this name; choose a different name", c.Name())
	}
	return createFiles(t, scripts, c.Files())
}

// nextSteps returns the commands to try after a component was created.
func nextSteps(c starter.Component, scripts string) string {
	script := fromHere(filepath.Join(scripts, filepath.FromSlash(c.Files()[0].Path)))
	flag := ""
	if dir := fromHere(scripts); dir != "scripts" {
		flag = " --scripts=" + quoted(dir)
	}
	try, about := "weir check"+flag, ""
	if c.Kind == starter.Transform { // other scripts need the address of a system
		try, about = "weir run"+flag+" --try", "'weir run --try'\nruns the script with sample data after each save. "
	}
	return fmt.Sprintf(`
Next, try these commands:

  weir test%[1]s %[2]s
  %[4]s %[2]s
  weir components%[1]s %[3]s

With --watch, 'weir test' repeats the tests when you save a file. %[5]s'weir components'
prints the manual of the component, with a block for your config.
`, flag, quoted(script), c.Name(), try, about)
}

// quoted returns a path as a shell reads it.
func quoted(path string) string {
	if regexp.MustCompile(`^[\w./\\:@%+=-]+$`).MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
