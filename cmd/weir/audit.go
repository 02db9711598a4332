package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/registry"
)

// auditFormats are the output formats of an audit.
var auditFormats = []string{"text", "json"}

func auditCommand(t *terminal) *cobra.Command {
	var dir, format, storage string
	cmd := &cobra.Command{
		Use:   "audit CONFIG",
		Short: "List the packages and scripts of a config and what they may do",
		Long: `List the packages that a config imports, a file or a directory of *.alloy files, with
their digests, and with the keys that signed them. List the scripts that it uses: the
source files of each script with their hashes, its hooks and the external
resources that it needs. For each block that uses a script, it lists the grants,
missing and unnecessary grants, and the limits. It also names files and folders
that users other than their owner or root can write, because anyone who can write
a script has the permissions of weir. Nothing is started.

If the config contains a mistake, the exit code is 1, and the list contains
everything that could still be read.`,
		Example: `  weir audit config.alloy
  weir audit --format=json /etc/weir | jq -r '.scripts[].files[] | .sha256 + "  " + .name'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("audit takes one config, not %d; several files of a directory are one config", len(args))
			case len(args) == 0:
				return errors.New("name a config to audit, a file or a directory of *.alloy files")
			case !slices.Contains(auditFormats, format):
				return fmt.Errorf("--format must be %s, not %q", strings.Join(auditFormats, " or "), format)
			}
			return nil
		},
		ValidArgsFunction: configFiles(oneConfig),
		RunE: failed(func(_ *cobra.Command, args []string) error {
			return audit(t, args[0], dir, storage, format)
		}),
	}
	cmd.Flags().StringVar(&dir, "scripts", "", "folder of scripts (default: scripts next to the config)")
	cmd.Flags().StringVar(&format, "format", "text", `"text" or "json"`)
	storageFlag(cmd.Flags(), &storage)
	return cmd
}

// auditReport is an audit as JSON.
type auditReport struct {
	Config   string          `json:"config"`
	Packages []listedPackage `json:"packages"` // by path
	Scripts  []auditScript   `json:"scripts"`  // by name
}

type auditScript struct {
	*registry.Audit
	Writable []string     `json:"writable_by_others"` // files and folders, as text
	Blocks   []auditBlock `json:"blocks"`             // in the order of the configuration
}

type auditBlock struct {
	ID       string `json:"id"`
	Position string `json:"position"`
	registry.AuditBlock
}

func audit(t *terminal, path, dir, storage, format string) error {
	e, err := lookingEngine(path, dir, storage, scriptsUse{})
	if err != nil {
		return err
	}
	defer e.close()
	blocks, cfg, ds := e.Blocks(path)
	if err := ds.Write(t.err, cfg.Files, t.errColor); err != nil {
		return err
	}
	scripts := map[string]*auditScript{}
	for _, b := range blocks {
		about, ok := b.About.(*registry.Audit)
		if !ok || b.Args == nil {
			continue
		}
		s := scripts[about.Name]
		if s == nil {
			s = &auditScript{Audit: about, Writable: writable(about)}
			scripts[about.Name] = s
		}
		s.Blocks = append(s.Blocks, auditBlock{ID: b.ID, Position: b.Position, AuditBlock: about.Block(b.Args)})
	}
	imports, _, _ := e.Imports(path) // Blocks has the mistakes
	in, err := importedIn(e, path, storage, imports)
	if err != nil {
		return err
	}
	r := auditReport{Config: path, Scripts: []auditScript{}}
	var unlisted error
	r.Packages, unlisted = in.listed()
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		r.Scripts = append(r.Scripts, *scripts[name])
	}
	if err := r.write(t, format); err != nil {
		return err
	}
	if unlisted != nil {
		return printAll(t, unlisted)
	}
	if ds.HasErrors() {
		errs, _ := errors.AsType[config.Diagnostics](ds.Err())
		fmt.Fprintln(t.err, count(len(errs), "mistake"))
		return &exitError{code: exitFailed}
	}
	return nil
}

// writable returns the files and folders of a script that other users can write
// to.
func writable(a *registry.Audit) []string {
	out := []string{}
	for _, p := range a.Paths() {
		if why := writableBy(p); why != "" {
			out = append(out, a.Shown(p)+" "+why)
		}
	}
	return out
}

func (r auditReport) write(t *terminal, format string) error {
	if format == "json" {
		e := json.NewEncoder(t.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	var b strings.Builder
	for _, p := range r.Packages {
		p.write(&b, t.outColor)
	}
	if len(r.Scripts) == 0 {
		fmt.Fprintf(&b, "%s uses no scripts\n", config.Printable(r.Config))
	}
	for i, s := range r.Scripts {
		if i > 0 {
			b.WriteByte('\n')
		}
		s.write(&b, t.outColor)
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

func (p listedPackage) write(b *strings.Builder, color bool) {
	fmt.Fprintf(b, "%s\n", paint(color, "1", "package "+p.Name+" "+p.Version))
	for _, row := range [][2]string{{"path", p.Path}, {"digest", p.Digest}, {"lock", p.Lock}, {"signer", p.Signer.String()}, {"license", p.License}} {
		fmt.Fprintf(b, "  %-11s %s\n", row[0], config.Printable(row[1]))
	}
	list(b, "  ", "needs", p.Needs, "no access to the outside")
	b.WriteByte('\n')
}

func (s auditScript) write(b *strings.Builder, color bool) {
	line := func(indent, what, text string) {
		fmt.Fprintf(b, "%s%-11s %s\n", indent, what, config.Printable(text))
	}
	fmt.Fprintf(b, "%s\n", paint(color, "1", s.Name))
	for _, f := range s.Files {
		name := f.Name
		if f.Shipped {
			name += " (ships with weir)"
		}
		line("  ", "file", name)
		line("  ", "  sha256", f.SHA256)
	}
	line("  ", "kind", fmt.Sprintf("%s in %s: %s", s.Kind, s.Language, strings.Join(s.Hooks, ", ")))
	list(b, "  ", "needs", s.Needs, "no access to the outside")
	list(b, "  ", "state", s.State, "")
	for _, w := range s.Writable {
		line("  ", paint(color, "33", "warning")+"    ", w)
	}
	for _, bl := range s.Blocks {
		fmt.Fprintf(b, "  %s  %s\n", paint(color, "1", bl.ID), config.Printable(bl.Position))
		list(b, "    ", "grants", bl.Allow.List(), "nothing")
		list(b, "    ", "missing", bl.Missing, "")
		list(b, "    ", "not needed", bl.Unneeded, "")
		mode := "concurrency " + string(bl.Concurrency) + ", on_error " + string(bl.OnError)
		if bl.OnReload != "" {
			mode += ", on_reload " + string(bl.OnReload)
		}
		line("    ", "runs", mode)
		var limits []string
		for _, k := range slices.Sorted(maps.Keys(bl.Limits)) {
			if v := fmt.Sprint(bl.Limits[k]); v != "" && v != "0" { // the default depends on the batch
				limits = append(limits, k+" "+v)
			}
		}
		line("    ", "limits", strings.Join(limits, ", "))
	}
}

// list writes the words, one per line, or none if there are no words.
func list(b *strings.Builder, indent, what string, words []string, none string) {
	if len(words) == 0 && none != "" {
		words = []string{none}
	}
	for _, w := range words {
		fmt.Fprintf(b, "%s%-11s %s\n", indent, what, config.Printable(w))
	}
}
