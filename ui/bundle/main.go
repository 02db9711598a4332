// Command bundle writes the web UI to dist, from the folder that contains package.json.
// The result depends only on the sources and on the lock file of npm.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if err := bundle("dist"); err != nil {
		fmt.Fprintln(os.Stderr, "cannot bundle the web UI:", err)
		os.Exit(1)
	}
}

func bundle(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	res := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: "src/main.tsx", OutputPath: "app"}, {InputPath: "src/style.css", OutputPath: "app"}},
		Bundle:              true, MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		// Code that a view imports when it is opened, such as the editor, is in separate files.
		Splitting: true, ChunkNames: "[name]-[hash]",
		Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
		LegalComments: api.LegalCommentsEndOfFile,
		Outdir:        filepath.Join(dir, "ui"), Write: true, LogLevel: api.LogLevelWarning,
	})
	if len(res.Errors) > 0 {
		return fmt.Errorf("esbuild found %d errors", len(res.Errors))
	}
	index, err := os.ReadFile("src/index.html")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "index.html"), index, 0o644)
}
