// Package starter contains the files that 'weir new' creates: scripts with their
// tests, the settings of formatters, and a project. It returns texts and writes
// nothing.
//
// The templates are complete files. The scripts in the folder scripts are components
// of the namespace template and pass 'weir check' and 'weir test' as they are; Files
// replaces only their names. JavaScript and TypeScript share templates, which
// therefore need no type annotations.
package starter

import (
	"embed"
	"path"
	"strings"
)

//go:embed scripts all:editor project
var templates embed.FS

// The values that the fields of a Component can have.
const (
	Lua        = "lua"
	JavaScript = "js"
	TypeScript = "ts"

	Transform = "transform"
	Source    = "source"
	Sink      = "sink"
	Discovery = "discovery"

	Metrics = "metrics"
	Logs    = "logs"
)

// Languages returns the possible languages of a component; the first one is the
// default, as for Kinds and Signals.
func Languages() []string { return []string{Lua, JavaScript, TypeScript} }

// Kinds returns the possible kinds of a component.
func Kinds() []string { return []string{Transform, Source, Sink, Discovery} }

// Signals returns the possible signals of a component.
func Signals() []string { return []string{Metrics, Logs} }

// Component is a component to create.
type Component struct {
	Path     string // below the scripts folder, without extension, such as http/paths
	Language string
	Kind     string
	Signal   string // not used by Discovery, which exports targets
}

// Name returns the name of the block, such as http.paths.
func (c Component) Name() string { return strings.ReplaceAll(c.Path, "/", ".") }

// A File is a file to create, with a slash path.
type File struct{ Path, Text string }

// Files returns the script and its test. The paths are below the scripts folder.
func (c Component) Files() []File {
	template := c.Kind
	if c.Kind != Discovery {
		template += "_" + c.Signal
	}
	script, test := ".ts", ".test.ts"
	if c.Language == Lua {
		script, test = ".lua", "_test.lua"
	}
	var out []File
	for _, suffix := range []string{script, test} {
		text := strings.NewReplacer(
			"template."+template, c.Name(),
			`"`+template+script+`"`, `"`+path.Base(c.Path)+script+`"`,
		).Replace(read("scripts/template/" + template + suffix))
		if c.Language == JavaScript {
			text = strings.ReplaceAll(text, script+`"`, `.js"`)
			if suffix == script {
				text = strings.Replace(text, "\nimport ", "\n// @ts-check\nimport ", 1)
			}
			suffix = strings.TrimSuffix(suffix, ".ts") + ".js"
		}
		out = append(out, File{c.Path + suffix, text})
	}
	return out
}

// Formatter returns the settings of the formatter for a language, to be written next
// to the scripts folder.
func Formatter(language string) File {
	name := ".prettierrc.json"
	if language == Lua {
		name = ".stylua.toml"
	}
	return File{name, read("editor/" + name)}
}

// Debugger returns the settings of VS Code for 'weir debug', to be written next to the
// scripts folder: a configuration that suggests a node, and an extension without code,
// because VS Code refuses debuggers that no extension declares.
func Debugger(node string) []File {
	const extension = ".vscode/extensions/weir-debug/package.json"
	return []File{
		{".vscode/launch.json", strings.ReplaceAll(read("editor/.vscode/launch.json"), "template.node.default", node)},
		{extension, read("editor/" + extension)},
	}
}

// ProjectComponent returns the component of a project, which its other files refer to.
func ProjectComponent(language string) Component {
	return Component{Path: "app/tidy", Language: language, Kind: Transform, Signal: Metrics}
}

// Project returns the files of a project except for the scripts and the settings of
// editors.
func Project(language string) []File {
	types := "ts"
	if language == Lua {
		types = "lua"
	}
	files := ProjectComponent(language).Files()
	names := strings.NewReplacer("app/tidy.lua", files[0].Path, "app/tidy_test.lua", files[1].Path, "--FLAG", "--"+types)
	var out []File
	for _, f := range []File{
		{"config.alloy", "config.alloy"},
		{"Makefile", "Makefile"},
		{"README.md", "README.md"},
		{".gitignore", "gitignore"}, // with its own name, it would apply to the templates
		{".github/workflows/check.yml", "workflow.yml"},
	} {
		out = append(out, File{f.Path, names.Replace(read("project/" + f.Text))})
	}
	return out
}

// read returns a template.
func read(name string) string {
	text, err := templates.ReadFile(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(text)
}
