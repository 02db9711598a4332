package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func typesCommand(t *terminal) *cobra.Command {
	var lua, ts bool
	var dir, out string
	cmd := &cobra.Command{
		Use:   "types --lua|--ts",
		Short: "Write types of what scripts use, for editors and tsc",
		Long: `Write the types with which editors complete and check scripts, and the editor settings
that refer to them, next to the scripts folder. Existing settings are not changed; if
something is missing in them, weir prints it.

For TypeScript and JavaScript: a weir.d.ts and a tsconfig.json, for editors and for
'tsc --noEmit'. Arguments, state and what a script needs are inferred from its
definition: ctx.args.keep is a string[]. A .js file is checked when it begins with
// @ts-check.

For Lua: annotations that lua-language-server and EmmyLua read, and a .luarc.json. They
contain the arguments that the scripts declare: ctx.args.region is a string. A hook
with the line

  ---@param ctx weir.ctx.http.paths

above it has the arguments of the script http.paths; other hooks have the arguments of
all scripts. Run the command again when arguments have changed.`,
		Example: `  weir types --ts
  weir types --lua --out=editor/types --scripts=./scripts`,
		Args: cobra.NoArgs,
		RunE: failed(func(*cobra.Command, []string) error {
			if !lua && !ts {
				return cannotStart(errors.New("cannot write types without a language: write weir types --lua, or --ts for TypeScript and JavaScript"))
			}
			dir, err := scriptsDir(dir, ".")
			if err != nil {
				return cannotStart(err)
			}
			dir, err = filepath.Abs(dir) // to find the folder that contains ..
			if err != nil {
				return cannotStart(fmt.Errorf("cannot find the scripts folder: %w", err))
			}
			home := filepath.Dir(dir)
			if out == "" {
				out = filepath.Join(home, ".weir", "types")
			}
			if lua {
				if err := writeLuaTypes(t, home, dir, out); err != nil {
					return err
				}
			}
			if ts {
				return writeTSTypes(t, home, dir, out)
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&lua, "lua", false, "types for Lua")
	f.BoolVar(&ts, "ts", false, "types for TypeScript and JavaScript")
	f.StringVar(&dir, "scripts", "", "folder of scripts (default: ./scripts)")
	f.StringVar(&out, "out", "", "folder for the types (default: .weir/types next to the scripts folder)")
	return cmd
}

func writeLuaTypes(t *terminal, home, scripts, out string) error {
	catalogs, err := scriptsUse{}.catalogs(scripts)
	if err != nil {
		return cannotStart(err)
	}
	defer closePlugins(catalogs)
	var known []api.Script
	for _, c := range catalogs {
		for _, s := range registry.Scripts(c) {
			if s.Err != nil {
				fmt.Fprintf(t.err, "%s is broken, its arguments are left out: %v\n", s.Name, s.Err)
				continue
			}
			known = append(known, api.Script{Name: s.Name, Def: s.Def})
		}
	}
	files := api.LuaTypes(stdlib.Modules(), scripttest.API(scripting.Busted), known)
	if err := writeTypes(out, files); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t.out, "%s: %s, %s\n", fromHere(out), count(len(files), "file"), count(len(known), "script")); err != nil {
		return err
	}
	return luarc(t, home, scripts, out)
}

func writeTSTypes(t *terminal, home, scripts, out string) error {
	if err := writeTypes(out, api.TSTypes(stdlib.Modules(), scripttest.API(scripting.Vitest))); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(t.out, fromHere(filepath.Join(out, api.TSFile))); err != nil {
		return err
	}
	types := relativeTo(home, filepath.Join(out, api.TSFile))
	settings := api.TSConfig(relativeTo(home, scripts), types)
	return writeSettings(t, filepath.Join(home, "tsconfig.json"), settings, fmt.Sprintf("add %q to its include", types), func(have []byte) bool {
		return bytes.Contains(have, []byte(strconv.Quote(types))) // the file may contain comments
	})
}

// writeTypes writes files into the folder out.
func writeTypes(out string, files map[string]string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder for types: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(out, name), []byte(files[name]), 0o644); err != nil {
			return fmt.Errorf("cannot write types: %w", err)
		}
	}
	return nil
}

// relativeTo returns a path in the form in which settings in the folder home
// contain it.
func relativeTo(home, path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		if from, err := filepath.Abs(home); err == nil {
			if r, err := filepath.Rel(from, abs); err == nil {
				return filepath.ToSlash(r)
			}
		}
	}
	return filepath.ToSlash(path)
}

// linesOfList matches a list of texts or numbers in several lines. Without what
// lineOfList matches, it is one line, as Prettier formats it.
var (
	linesOfList = regexp.MustCompile(`\[\n[^\[\]{}]*\]`)
	lineOfList  = regexp.MustCompile(`\n *`)
)

// writeSettings writes editor settings to path. Existing settings are not
// changed: unless enough returns true for them, lacks is printed, which says what
// to add.
func writeSettings(t *terminal, path string, settings any, lacks string, enough func(have []byte) bool) error {
	have, err := files.Read(path, 16<<20)
	switch {
	case errors.Is(err, os.ErrNotExist):
		want, err := json.MarshalIndent(settings, "", "  ")
		if err != nil {
			return err
		}
		want = linesOfList.ReplaceAllFunc(want, func(list []byte) []byte {
			return lineOfList.ReplaceAll(bytes.ReplaceAll(list, []byte(",\n"), []byte(", \n")), nil)
		})
		if err := os.WriteFile(path, append(want, '\n'), 0o644); err != nil {
			return fmt.Errorf("cannot write the settings of editors: %w", err)
		}
		_, err = fmt.Fprintln(t.out, fromHere(path))
		return err
	case err != nil:
		return fmt.Errorf("cannot read the settings of editors: %w", err)
	}
	if !enough(have) {
		fmt.Fprintf(t.err, "%s is there already: %s\n", fromHere(path), lacks)
	}
	return nil
}

// luarc writes the settings of lua-language-server next to the scripts folder.
//
// Format: https://luals.github.io/wiki/settings/
func luarc(t *terminal, home, scripts, types string) error {
	rel := func(path string) string { return relativeTo(home, path) }
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
	lacks := fmt.Sprintf("add %q to its workspace.library", rel(types))
	return writeSettings(t, filepath.Join(home, ".luarc.json"), settings, lacks, func(have []byte) bool { return leads(have, rel(types)) })
}

// leads reports whether settings contain the folder in workspace.library, as a
// flat or nested key.
func leads(settings []byte, folder string) bool {
	var s struct {
		Flat      []string `json:"workspace.library"`
		Workspace struct {
			Library []string `json:"library"`
		} `json:"workspace"`
	}
	// Settings that cannot be parsed, for example because of comments, count as
	// incomplete.
	if err := json.Unmarshal(settings, &s); err != nil {
		return false
	}
	return slices.Contains(s.Flat, folder) || slices.Contains(s.Workspace.Library, folder)
}
