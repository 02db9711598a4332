// Package js runs components written in JavaScript and TypeScript, on goja.
//
// It is the only importer of goja and esbuild. It is not for anything that
// another language would need as well: that is package scripting.
package js

import (
	_ "github.com/dlclark/regexp2/v2"
	_ "github.com/dop251/goja"
	_ "github.com/evanw/esbuild/pkg/api"
	_ "github.com/go-sourcemap/sourcemap"
)
