package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

func docCommand(t *terminal) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:   "doc [NAME]",
		Short: "Print the manual of what scripts may use",
		Long: `Print the manual of a name that scripts use: a module (json), a function
(json.decode), a type (batch), an operation or a field of one (batch.drop_where,
record.value), a part of the context (ctx.http), what tests have
(assert.same); or of a component (http.paths). A last part is enough:
drop_where.

Without a name it lists all there is; with --format=markdown it prints the whole
manual. Each example in it is run by weir's own tests.

'weir help scripts' tells how a script is written.`,
		Example: `  weir doc
  weir doc json.decode
  weir doc batch.drop_where
  weir doc ctx.http
  weir doc --format=markdown > scripts.md`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("doc takes one name, not %d; without a name it lists all", len(args))
			}
			if format != "text" && format != "markdown" {
				return fmt.Errorf("cannot use --format=%s: it must be text or markdown", format)
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
			if len(args) == 0 {
				if format == "markdown" {
					return writeBook(t.out, b)
				}
				return listBook(t, b)
			}
			found, err := b.Find(args[0])
			if err != nil {
				return docOfComponent(t, args[0], dir, err)
			}
			for i := range found {
				if i > 0 {
					fmt.Fprintln(t.out)
				}
				text := found[i].Text(func(s string) string { return paint(t.outColor, "1", s) })
				if format == "markdown" {
					text = found[i].Markdown()
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
	return cmd
}

func book() *api.Book { return api.NewBook(stdlib.Modules(), scripttest.API(scripting.Busted)) }

// docOfComponent prints the manual of a component; unknown is the error when
// there is none of this name.
func docOfComponent(t *terminal, name, dir string, unknown error) error {
	dir, err := scriptsDir(dir, ".")
	if err != nil {
		return cannotStart(err)
	}
	catalogs, err := usable(dir)
	if err != nil {
		return cannotStart(err)
	}
	r, ok := lookup(catalogs, name)
	if ok && r.Err != nil {
		return r.Err
	}
	if ok {
		return writeManual(t, r)
	}
	if strings.Contains(unknown.Error(), "lists all") {
		var names []string
		for _, c := range catalogs {
			names = append(names, c.Names()...)
		}
		if hint := config.DidYouMean(name, names); hint != "" {
			return fmt.Errorf("there is nothing called %s; %s", name, hint)
		}
	}
	return unknown
}

// listBook prints a line for each module and type.
func listBook(t *terminal, b *api.Book) error {
	tw := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	for _, e := range b.Entries() {
		if e.Area {
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
func writeBook(w io.Writer, b *api.Book) error {
	var out strings.Builder
	out.WriteString("# What scripts may use\n")
	areas := slices.DeleteFunc(slices.Clone(b.Entries()), func(e api.Entry) bool { return !e.Area })
	for _, e := range areas {
		fmt.Fprintf(&out, "\n- [%s](#%s): %s", e.Name, strings.ToLower(strings.NewReplacer(" ", "-", ".", "").Replace(e.Name)), firstSentence(e.Doc))
	}
	out.WriteByte('\n')
	for _, e := range b.Entries() {
		out.WriteString("\n" + e.Markdown())
	}
	_, err := io.WriteString(w, out.String())
	return err
}
