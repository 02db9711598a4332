package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

func componentsCommand(t *terminal) *cobra.Command {
	var (
		dir, format  string
		source, test bool
	)
	cmd := &cobra.Command{
		Use:   "components [NAME]",
		Short: "List the components, or print the manual or the source of one",
		Long: `List what a config can use: the native components, the scripts that ship with
weir, the scripts in the scripts folder, and the blocks that create and import
components or configure weir itself. With a name, print the manual of that
component: its arguments with types and defaults, its exports and an example.
With the first parts of a name, list the components whose names begin with them.

With --format=markdown, print the manuals as Markdown; without a name, those of all
components.

With --source, print the source of a script that ships with weir, to read it or
to change a copy: a script with the same name in the scripts folder replaces the
shipped script. With --source --test, print its test file.`,
		Example: `  weir components
  weir components prometheus
  weir components prometheus.scrape
  weir components foreach
  weir components --scripts=./scripts demo.units
  weir components --format=markdown > components.md
  weir components --source logs.redact > scripts/logs/redact.lua
  weir components --source --test logs.redact > scripts/logs/redact_test.lua`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("components takes one name, not %d; without a name it lists all components", len(args))
			case format != "text" && format != "markdown":
				return fmt.Errorf("cannot use --format=%s: it must be text or markdown", format)
			case test && !source:
				return errors.New("--test prints the test of a script: use it with --source")
			case source && len(args) == 0:
				return errors.New("name the script to print, such as 'weir components --source demo.tidy'")
			}
			return nil
		},
		ValidArgsFunction: componentNames(&dir, &source),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			if source {
				return printSource(t, args[0], test)
			}
			dir, err := scriptsDir(dir, ".")
			if err != nil {
				return cannotStart(err)
			}
			catalogs, err := usable(dir)
			if err != nil {
				return cannotStart(err)
			}
			defer closePlugins(catalogs)
			if len(args) == 0 && format == "markdown" {
				return writeAllManuals(t.out, catalogs)
			}
			if len(args) == 0 {
				return listComponents(t.out, catalogs, "")
			}
			name := args[0]
			if around := inner[name]; around != "" {
				name = around
			}
			r, ok := lookup(catalogs, name)
			if !ok {
				names := allNames(catalogs)
				prefix := strings.TrimSuffix(name, ".") + "."
				if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
					return listComponents(t.out, catalogs, prefix)
				}
				return noComponent(name, names)
			}
			if r.Err != nil {
				return r.Err
			}
			if format == "markdown" {
				_, err := io.WriteString(t.out, markdownManual(r))
				return err
			}
			return writeManual(t.out, t.outColor, r)
		}),
	}
	cmd.Flags().StringVar(&dir, "scripts", "", "folder of scripts (default: ./scripts)")
	cmd.Flags().StringVar(&format, "format", "text", "how to print manuals: text or markdown")
	cmd.Flags().BoolVar(&source, "source", false, "print the source of a script that ships with weir")
	cmd.Flags().BoolVar(&test, "test", false, "with --source: print the test file of the script")
	return cmd
}

func noComponent(name string, names []string) error {
	if err := lacking(name, names); err != nil {
		return err
	}
	return fmt.Errorf("there is no component %s; 'weir components' lists all components", name)
}

func allNames(catalogs []component.Catalog) (names []string) {
	for _, c := range catalogs {
		names = append(names, c.Names()...)
	}
	return names
}

// lacking returns the error for an unknown component. If weir deliberately lacks
// the component, the error says what to use instead; otherwise, it suggests a
// similar name. It returns nil if there is no such advice.
func lacking(name string, names []string) error {
	u := unsupported()
	if instead, ok := u[name]; ok {
		return fmt.Errorf("%s is not supported: %s", name, instead)
	}
	if hint := u.Suggest(name, names); hint != "" {
		return fmt.Errorf("there is no component %s; %s", name, hint)
	}
	if instead, ok := u.Find(name); ok {
		return fmt.Errorf("%s is not supported: %s", name, instead)
	}
	return nil
}

func lookup(catalogs []component.Catalog, name string) (component.Registration, bool) {
	for _, c := range catalogs {
		if r, ok := c.Lookup(name); ok {
			return r, true
		}
	}
	return component.Registration{}, false
}

// usable returns the catalogs that a config can use: components, and the blocks
// around them.
func usable(scriptsDir string) ([]component.Catalog, error) {
	components, err := scriptsUse{}.catalogs(scriptsDir)
	if err != nil {
		return nil, err
	}
	more, err := blocks()
	if err != nil {
		return nil, err
	}
	return append(components, more), nil
}

// listComponents prints one line for each component whose name begins with
// prefix: its name and the first sentence of its manual.
func listComponents(w io.Writer, catalogs []component.Catalog, prefix string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, c := range catalogs {
		for _, name := range c.Names() {
			r, ok := c.Lookup(name)
			if !ok || !strings.HasPrefix(name, prefix) {
				continue
			}
			line := firstSentence(r.Doc.Summary)
			if r.Err != nil {
				first, _, _ := strings.Cut(r.Err.Error(), "\n")
				line = "broken: " + first
			}
			fmt.Fprintf(tw, "%s\t%s\n", name, config.Printable(line+origin(r)))
		}
	}
	return tw.Flush()
}

// origin returns the file of a script. It is empty for a native component.
func origin(r component.Registration) string {
	if len(r.Sources) == 0 {
		return ""
	}
	shipped, _ := shippedFiles(r.Name)
	// The source of a script that ships with weir is the file that would replace
	// it.
	if _, err := os.Stat(r.Sources[0]); err != nil && shipped != "" {
		return "  (ships with weir)"
	}
	if shipped != "" {
		return "  (" + r.Sources[0] + ", replaces the one that ships with weir)"
	}
	return "  (" + r.Sources[0] + ")"
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}

// writeManual prints the manual of a component.
func writeManual(w io.Writer, color bool, r component.Registration) error {
	var b strings.Builder
	head := func(s string) string { return paint(color, "1", s) }
	fmt.Fprintf(&b, "%s\n\n%s\n", head(r.Name), config.Printable(strings.TrimSpace(r.Doc.Summary)))
	if r.Accepts != 0 {
		fmt.Fprintf(&b, "\nIt takes %s through its export receiver.\n", r.Accepts)
	}
	if r.Unique {
		fmt.Fprint(&b, "\nA config may contain one block of this component, without a label.\n")
	}
	fmt.Fprintf(&b, "\n%s\n", head("Arguments"))
	var args []config.Field
	if r.NewArgs != nil {
		args = config.Describe(r.NewArgs())
	}
	writeFields(&b, args, r.Doc.Args, true)
	if exports := config.Describe(r.Exports); len(exports) > 0 {
		fmt.Fprintf(&b, "\n%s\n", head("Exports"))
		writeFields(&b, exports, r.Doc.Exports, false)
	}
	if r.Doc.Example != "" {
		fmt.Fprintf(&b, "\n%s\n%s\n", head("Example"), indent(config.Printable(strings.Trim(exampleOf(r), "\n")), "  "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// exampleOf returns the example of a component, formatted as by 'weir fmt'.
func exampleOf(r component.Registration) string {
	if text, ds := config.Format(r.Name, r.Doc.Example); len(ds) == 0 {
		return text
	}
	return r.Doc.Example
}

func writeFields(b *strings.Builder, fields []config.Field, docs map[string]string, required bool) {
	if len(fields) == 0 {
		fmt.Fprintln(b, "  none")
	}
	for _, f := range fields {
		line := f.Path
		switch {
		case f.Block && f.Labeled:
			line += ` "…" { … }`
		case f.Block:
			line += " { … }"
		default:
			line += " " + f.Type
		}
		switch {
		case f.Required && required:
			line += ", required"
		case f.Default != "":
			line += " = " + f.Default
		}
		if f.Repeated {
			line += ", may be repeated"
		}
		fmt.Fprintf(b, "  %s\n", line)
		doc := strings.TrimSpace(docs[f.Path])
		if strings.HasSuffix(f.Path, ".*") && doc == "" {
			doc = "Blocks of the same kinds as outside."
		}
		if doc != "" {
			fmt.Fprintln(b, indent(config.Printable(doc), "      "))
		}
	}
}

func indent(s, by string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = by + l
		}
	}
	return strings.Join(lines, "\n")
}
