package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func docCommand(t *terminal) *cobra.Command {
	var dir, format, lang string
	cmd := &cobra.Command{
		Use:   "doc [NAME]",
		Short: "Print the manual of what scripts may use",
		Long: `Print the manual of a name that scripts use: a module (json), a function
(json.decode), a type (batch), an operation or a field of one (batch.drop_where,
record.value), a part of the context (ctx.http), a function of tests
(assert.same), an argument of the block script of a config (script.on_error), or a
component (http.paths). The last part of a name is sufficient: drop_where. The
names in JavaScript and TypeScript work too: dropWhere, defineSource.

Without a name, it lists all names; with --format=markdown, it prints the whole
manual. weir's own tests run every example in it.

'weir help scripts' explains how to write a script.`,
		Example: `  weir doc
  weir doc json.decode
  weir doc batch.drop_where
  weir doc --lang=js batch.dropWhere
  weir doc script.limits
  weir doc --format=markdown > scripts.md`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("doc takes one name, not %d; without a name it lists all", len(args))
			}
			if format != "text" && format != "markdown" {
				return fmt.Errorf("cannot use --format=%s: it must be text or markdown", format)
			}
			switch lang {
			case "lua", "js", "both":
			case "javascript", "ts", "typescript":
				lang = "js"
			default:
				return fmt.Errorf("cannot use --lang=%s: it must be lua, js or both", lang)
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, e := range book().Entries() {
				names = append(names, e.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: failed(func(_ *cobra.Command, args []string) error {
			b := book()
			lang := api.Lang(strings.TrimPrefix(lang, "both"))
			if len(args) == 0 {
				if format == "markdown" {
					return writeBook(t.out, b, lang)
				}
				return listBook(t, b, lang)
			}
			found, err := b.Find(args[0])
			if err != nil {
				return docOfComponent(t, args[0], dir, err)
			}
			for i := range found {
				if i > 0 {
					fmt.Fprintln(t.out)
				}
				text := found[i].Text(lang, func(s string) string { return paint(t.outColor, "1", s) })
				if format == "markdown" {
					text = found[i].Markdown(lang)
				}
				if _, err := io.WriteString(t.out, text); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&dir, "scripts", "", "folder of scripts (default: ./scripts)")
	cmd.Flags().StringVar(&format, "format", "text", "how to print: text or markdown")
	cmd.Flags().StringVar(&lang, "lang", "both", "the language: lua, js (and TypeScript), or both")
	return cmd
}

func book() *api.Book {
	return api.NewBook(stdlib.Modules(), scripttest.API(scripting.Busted), scripttest.API(scripting.Vitest))
}

// docOfComponent prints the manual of a component. unknown is the error if there
// is no component with this name.
func docOfComponent(t *terminal, name, dir string, unknown error) error {
	dir, err := scriptsDir(dir, ".")
	if err != nil {
		return cannotStart(err)
	}
	catalogs, err := usable(dir)
	if err != nil {
		return cannotStart(err)
	}
	defer closePlugins(catalogs)
	if found, err := docOfBlock(t, catalogs, name); found {
		return err
	}
	r, ok := lookup(catalogs, name)
	if ok && r.Err != nil {
		return r.Err
	}
	if ok {
		return writeManual(t.out, t.outColor, r)
	}
	if strings.Contains(unknown.Error(), "lists all") {
		var names []string
		for _, c := range catalogs {
			names = append(names, c.Names()...)
		}
		if err := lacking(name, names); err != nil {
			return err
		}
	}
	return unknown
}

// docOfBlock prints the manual of a block that all scripted components have, such
// as script.limits or on_error. It takes the manual from the first component that
// has it.
func docOfBlock(t *terminal, catalogs []component.Catalog, name string) (found bool, err error) {
	for _, c := range catalogs {
		for _, s := range registry.Scripts(c) {
			r, ok := c.Lookup(s.Name)
			if !ok || r.Err != nil || s.Def == nil || s.Def.Kind != scripting.Transform {
				continue
			}
			path := strings.TrimPrefix(name, "script.")
			var fields []config.Field
			for _, f := range config.Describe(r.NewArgs()) {
				if own, ok := strings.CutPrefix(f.Path, "script."); ok && (own == path || strings.HasPrefix(own, path+".") || strings.HasSuffix(own, "."+path)) ||
					name == "script" && (f.Path == name || ok) {
					fields = append(fields, f)
				}
			}
			if len(fields) == 0 {
				return false, nil
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n\nThe host's side of every scripted block: script { … } in the config.\n\n", paint(t.outColor, "1", fields[0].Path))
			writeFields(&b, fields, r.Doc.Args, true)
			_, err := io.WriteString(t.out, b.String())
			return true, err
		}
	}
	return false, nil
}

// listBook prints a line for each module and type.
func listBook(t *terminal, b *api.Book, lang api.Lang) error {
	tw := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	for _, e := range b.Entries() {
		if e.Area && e.Has(lang) {
			fmt.Fprintf(tw, "%s\t%s\n", e.Name, firstSentence(e.Doc))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(t.out, "\n'weir doc NAME' has what each of them has, 'weir help scripts' tells how a script is\nwritten, 'weir components' lists the components.\n")
	return err
}

// writeBook prints the whole manual as Markdown.
func writeBook(w io.Writer, b *api.Book, lang api.Lang) error {
	var out strings.Builder
	out.WriteString("# What scripts may use\n")
	entries := slices.DeleteFunc(slices.Clone(b.Entries()), func(e api.Entry) bool { return !e.Has(lang) })
	for _, e := range entries {
		if !e.Area {
			continue
		}
		fmt.Fprintf(&out, "\n- [%s](#%s): %s", e.Name, strings.ToLower(strings.NewReplacer(" ", "-", ".", "").Replace(e.Name)), firstSentence(e.Doc))
	}
	out.WriteByte('\n')
	for i := range entries {
		out.WriteString("\n" + entries[i].Markdown(lang))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
