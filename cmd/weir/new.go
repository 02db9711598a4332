package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weir/starter"
	"github.com/weir-run/weir/engine/files"
)

func newCommand(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Create a component or a project",
		Long: `Create the files of a component, which is a script with a test, or of a project: a
config, a script with a test, a Makefile and a CI workflow. Existing files are not
changed.`,
		Example: `  weir new component ops/tidy
  weir new project collector`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("say what to create: component or project")
			}
			return fmt.Errorf("cannot create %q, only a component or a project", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newComponentCommand(t), newProjectCommand(t))
	return cmd
}

// createFiles creates files below dir, with their folders, and prints their paths. If
// one of them exists, it creates none.
func createFiles(t *terminal, dir string, all []starter.File) error {
	var existing []string
	for _, f := range all {
		if path := filepath.Join(dir, filepath.FromSlash(f.Path)); exists(path) {
			existing = append(existing, fromHere(path))
		}
	}
	if len(existing) > 0 {
		return fmt.Errorf("cannot create %s: existing files are not changed", strings.Join(existing, ", "))
	}
	for _, f := range all {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := createFile(path, f.Text); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(t.out, "created", fromHere(path)); err != nil {
			return err
		}
	}
	return nil
}

// createFile creates a file, which must not exist, and its folder.
func createFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { // subject to the umask
		return fmt.Errorf("cannot create the folder of %s: %w", fromHere(path), err)
	}
	return files.Create(path, text)
}

// createEditorSetup writes the settings of the formatter and of the debugger, the types
// and the settings of the language server next to the scripts folder. The debugger
// suggests the node of a component. Existing settings are kept.
func createEditorSetup(t *terminal, c starter.Component, scripts string) error {
	language := c.Language
	home := filepath.Dir(scripts)
	types := filepath.Join(home, ".weir", "types")
	server, write := ".luarc.json", writeLuaTypes
	if language != starter.Lua {
		server, write = "tsconfig.json", writeTSTypes
	}
	formatter := starter.Formatter(language)
	report := func(path string, existed bool) error {
		text := "created " + fromHere(path)
		if existed {
			text = "kept    " + fromHere(path) + ", which exists"
		}
		_, err := fmt.Fprintln(t.out, text)
		return err
	}

	for _, f := range append([]starter.File{formatter}, starter.Debugger(c.Name()+".default")...) {
		path := filepath.Join(home, filepath.FromSlash(f.Path))
		existed := exists(path)
		if !existed {
			if err := createFile(path, f.Text); err != nil {
				return err
			}
		}
		if err := report(path, existed); err != nil {
			return err
		}
	}

	path := filepath.Join(home, server)
	existed := exists(path)
	quiet := *t
	quiet.out = io.Discard
	if err := write(&quiet, home, scripts, types); err != nil {
		return err
	}
	if err := report(path, existed); err != nil {
		return err
	}
	_, err := fmt.Fprintln(t.out, "wrote  ", fromHere(types))
	return err
}

// exists reports whether there is something at path, which may be a broken link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// fromHere returns a path relative to the working directory if that is shorter.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil || len(rel) > len(path) {
		return path
	}
	return rel
}
