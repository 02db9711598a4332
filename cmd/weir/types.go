package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func typesCommand(t *terminal) *cobra.Command {
	var lua bool
	var dir, out string
	cmd := &cobra.Command{
		Use:   "types --lua",
		Short: "Write types of what scripts use, for editors",
		Long: `Write what editors complete and check scripts by: for Lua, annotations that
lua-language-server and EmmyLua read, and beside the scripts folder a .luarc.json
that leads to them. One that is there already stays as it is; what it lacks is
said.

The arguments that the scripts declare are in the types: ctx.args.region is a
string. A hook with the line

  ---@param ctx weir.ctx.http.paths

above it has those of the script http.paths, others those of all scripts.
Write the types anew when arguments have changed.`,
		Example: `  weir types --lua
  weir types --lua --out=editor/types --scripts=./scripts`,
		Args: cobra.NoArgs,
		RunE: failed(func(*cobra.Command, []string) error {
			if !lua {
				return cannotStart(errors.New("cannot write types without a language: write weir types --lua"))
			}
			dir, err := scriptsDir(dir, ".")
			if err != nil {
				return cannotStart(err)
			}
			return writeTypes(t, dir, out)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&lua, "lua", false, "types for Lua")
	f.StringVar(&dir, "scripts", "", "folder of scripts (default: ./scripts)")
	f.StringVar(&out, "out", "", "folder for the types (default: .weir/types beside the scripts folder)")
	return cmd
}

func writeTypes(t *terminal, scripts, out string) error {
	catalogs, err := catalogs(scripts, nil, nil)
	if err != nil {
		return cannotStart(err)
	}
	var known []api.Script
	for _, c := range catalogs {
		for _, s := range scripting.Scripts(c) {
			if s.Err != nil {
				fmt.Fprintf(t.err, "%s is broken, its arguments are left out: %v\n", s.Name, s.Err)
				continue
			}
			known = append(known, api.Script{Name: s.Name, Def: s.Def})
		}
	}
	home := filepath.Dir(filepath.Clean(scripts))
	if out == "" {
		out = filepath.Join(home, ".weir", "types")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for types: %w", err)
	}
	files := api.LuaTypes(stdlib.Modules(), scripttest.API(scripting.Busted), known)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(out, name), []byte(files[name]), 0o644); err != nil {
			return fmt.Errorf("cannot write types: %w", err)
		}
	}
	if _, err := fmt.Fprintf(t.out, "%s: %s, %s\n", out, count(len(names), "file"), count(len(known), "script")); err != nil {
		return err
	}
	return luarc(t, home, scripts, out)
}

// luarc writes the settings of lua-language-server beside the scripts folder.
//
// Format: https://luals.github.io/wiki/settings/
func luarc(t *terminal, home, scripts, types string) error {
	rel := func(path string) string {
		if abs, err := filepath.Abs(path); err == nil {
			if from, err := filepath.Abs(home); err == nil {
				if r, err := filepath.Rel(from, abs); err == nil {
					return filepath.ToSlash(r)
				}
			}
		}
		return filepath.ToSlash(path)
	}
	settings := map[string]any{
		"$schema":                        "https://raw.githubusercontent.com/LuaLS/vscode-lua/master/setting/schema.json",
		"runtime.version":                "Lua 5.1",
		"runtime.path":                   []string{rel(filepath.Join(scripts, "lib")) + "/?.lua", "?.lua"},
		"runtime.builtin":                map[string]string{"io": "disable", "os": "disable", "debug": "disable"},
		"workspace.library":              []string{rel(types)},
		"workspace.checkThirdParty":      false,
		"diagnostics.disable":            []string{"lowercase-global"},
		"workspace.ignoreDir":            []string{".weir"},
		"completion.callSnippet":         "Replace",
		"diagnostics.libraryFiles":       "Disable",
		"diagnostics.unusedLocalExclude": []string{"_*", "ctx"},
	}
	want, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(home, ".luarc.json")
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.WriteFile(path, append(want, '\n'), 0o644); err != nil {
			return fmt.Errorf("cannot write the settings of editors: %w", err)
		}
		_, err = fmt.Fprintln(t.out, path)
		return err
	case err != nil:
		return fmt.Errorf("cannot read the settings of editors: %w", err)
	}
	if !leads(have, rel(types)) {
		fmt.Fprintf(t.err, "%s is there already: add %q to its workspace.library\n", path, rel(types))
	}
	return nil
}

// leads reports whether settings have the folder in workspace.library, written
// flat or nested.
func leads(settings []byte, folder string) bool {
	var s struct {
		Flat      []string `json:"workspace.library"`
		Workspace struct {
			Library []string `json:"library"`
		} `json:"workspace"`
	}
	// What cannot be read, with comments in it, is said to lack it.
	if err := json.Unmarshal(settings, &s); err != nil {
		return false
	}
	return slices.Contains(s.Flat, folder) || slices.Contains(s.Workspace.Library, folder)
}
