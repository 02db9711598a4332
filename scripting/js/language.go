// Package js runs components written in JavaScript and TypeScript, on goja.
//
// esbuild transforms each file separately: it strips types, lowers syntax that
// goja does not support, and converts import and export to CommonJS, so that a
// file is a function of (exports, require, module). goja uses its source map to
// report positions in the source. A file is compiled once, and all VMs share
// its goja.Program. The names of the API table are in camelCase
// (scripting.CamelCase), and a function that waits returns a promise, which is
// settled before the call returns (async.go).
//
// Host functions are func(goja.FunctionCall) goja.Value, and fromGo and toGo
// convert values: goja's reflection would be slow and expose Go's names.
//
// Only this package imports goja and esbuild. Anything that another language
// needs as well belongs to package scripting.
package js

import (
	"strings"

	"github.com/weir-run/weir/scripting"
)

// version must change if the behaviour of scripts changes, so that running
// nodes are rebuilt without a reload of the script.
const version = "js-1"

// Language is JavaScript and TypeScript. Create it with New.
type Language struct{}

// New returns the language.
func New() *Language { return &Language{} }

var _ scripting.Language = (*Language)(nil)

// Name returns "javascript".
func (*Language) Name() string { return "javascript" }

// Version returns the version of this implementation of JavaScript.
func (*Language) Version() string { return version }

// Extensions returns ".ts" and ".js".
func (*Language) Extensions() []string { return []string{".ts", ".js"} }

// Comment returns the lines of the comment at the beginning of text: lines of
// //, or a block of /* or /**, without the * at the beginning of its lines.
// Line i of the result is line i of the text; leading empty lines are kept.
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
