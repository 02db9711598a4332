// Package js runs components written in JavaScript and TypeScript, on goja.
//
// Each file goes through esbuild by itself: types are stripped, what goja lacks
// is lowered, and import and export become CommonJS, so that a file is a
// function of (exports, require, module). Its source map goes with it: goja
// then gives positions of what the author wrote. A file is compiled once and
// its goja.Program shared by all VMs. Names that the API table declares are
// camelCase here (scripting.CamelCase), and what a function waits for is a
// promise, which is settled before the call returns (async.go).
//
// Host functions are func(goja.FunctionCall) goja.Value, and values cross by
// fromGo and toGo: goja's reflection would be slow and show Go's names.
//
// It is the only importer of goja and esbuild. It is not for anything that
// another language would need as well: that is package scripting.
package js

import (
	"strings"

	"github.com/weir-run/weir/scripting"
)

// version changes when scripts behave otherwise: a save is not needed then to
// rebuild what runs.
const version = "js-1"

// Language is JavaScript and TypeScript. Make it with New.
type Language struct{}

// New returns the language.
func New() *Language { return &Language{} }

var _ scripting.Language = (*Language)(nil)

// Name returns "javascript".
func (*Language) Name() string { return "javascript" }

// Version returns the version of what this package makes of JavaScript.
func (*Language) Version() string { return version }

// Extensions returns ".ts" and ".js".
func (*Language) Extensions() []string { return []string{".ts", ".js"} }

// Comment returns the lines of the comment that text begins with: lines of //,
// or one block of /* or /**, without the * that its lines begin with. Line i of
// the result is line i of the text: what is empty at the start is kept.
func (*Language) Comment(text string) []string {
	text = strings.TrimPrefix(text, "\ufeff")
	if block, ok := strings.CutPrefix(text, "/*"); ok {
		block, _, _ = strings.Cut(block, "*/")
		return blockComment(strings.TrimPrefix(block, "*"))
	}
	var out []string
	for line := range strings.Lines(text) {
		c, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
		if !ok {
			break
		}
		out = append(out, strings.TrimPrefix(c, " "))
	}
	return out
}

func blockComment(block string) []string {
	var out []string
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, " \t\r\n")
		line = strings.TrimLeft(line, " \t")
		if c, ok := strings.CutPrefix(line, "*"); ok {
			line = strings.TrimPrefix(c, " ")
		}
		out = append(out, line)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
