package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write manual pages for man(1)",
		Long: `Write a manual page for each command and for each topic of 'weir help' to a directory,
for man(1). The pages have the texts of 'weir COMMAND --help': weir-run(1) describes
'weir run', and weir-config(7) is the topic config.

Pages of commands are written to DIR/man1 and topics to DIR/man7, which are created if
they do not exist. Pages that exist are replaced. Packages install them below
/usr/share/man.`,
		Example: `  weir man --dir /usr/local/share/man && man weir-run
  weir man --dir ~/.local/share/man && man weir-lua`,
		Args: cobra.NoArgs,
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return fmt.Errorf("cannot write manual pages: name a directory with --dir")
			}
			pages := manPages(cmd.Root())
			for _, p := range pages {
				path := filepath.Join(dir, p.file())
				err := os.MkdirAll(filepath.Dir(path), 0o755)
				if err == nil {
					err = os.WriteFile(path, []byte(p.roff()), fs.FileMode(0o644))
				}
				if err != nil {
					return fmt.Errorf("cannot write manual pages: %w", err)
				}
			}
			t.printStatus("wrote", fmt.Sprintf("%s in %s", count(len(pages), "manual page"), dir))
			return nil
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory that contains man1 and man7, such as /usr/local/share/man")
	return cmd
}

// manPage is a manual page of a command, or of a topic.
type manPage struct {
	cmd     *cobra.Command
	section int
}

// manPages returns the pages of a command and of those below it, sorted by command.
func manPages(c *cobra.Command) (out []manPage) {
	if c.Hidden || c.Name() == "help" {
		return nil
	}
	section := 1
	if !c.Runnable() && !c.HasSubCommands() {
		section = 7
	}
	out = append(out, manPage{c, section})
	for _, sub := range c.Commands() {
		out = append(out, manPages(sub)...)
	}
	return out
}

func (p manPage) name() string { return strings.ReplaceAll(p.cmd.CommandPath(), " ", "-") }

// file is the path of the page below the directory of all pages.
func (p manPage) file() string {
	return filepath.Join(fmt.Sprintf("man%d", p.section), fmt.Sprintf("%s.%d", p.name(), p.section))
}

// roff returns the page in the macros of man(7).
func (p manPage) roff() string {
	var b strings.Builder
	c := p.cmd
	fmt.Fprintf(&b, ".TH %s %d \"\" \"weir %s\" \"weir manual\"\n", roffText(strings.ToUpper(p.name())), p.section, roffText(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roffText(p.name()), roffText(c.Short))
	if p.section == 1 {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n.B %s\n.fi\n", roffText(c.UseLine()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	roffBody(&b, cmp.Or(c.Long, c.Short))
	roffFlags(&b, "OPTIONS", c.NonInheritedFlags())
	roffFlags(&b, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		roffBody(&b, c.Example)
	}
	if also := p.seeAlso(); len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(also, ",\n") + "\n")
	}
	return b.String()
}

// seeAlso returns the pages above and below a page.
func (p manPage) seeAlso() (out []string) {
	add := func(q manPage) { out = append(out, fmt.Sprintf(".BR %s (%d)", roffText(q.name()), q.section)) }
	if p.cmd.HasParent() {
		add(manPage{p.cmd.Parent(), 1})
	}
	for _, q := range manPages(p.cmd) {
		if q.cmd.Parent() == p.cmd {
			add(q)
		}
	}
	for i := range out[:max(0, len(out)-1)] {
		out[i] += " " // the comma follows in the roman font
	}
	return out
}

// roffFlags writes flags as a list.
func roffFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			kind = " " + kind
		}
		if !slices.Contains([]string{"", "false", "0", "[]", "0s"}, f.DefValue) {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roffText(name+kind), roffText(usage))
	})
}

// roffBody writes a text. Lines that begin with spaces or in a fence are kept as they
// are; other lines are filled.
func roffBody(b *strings.Builder, text string) {
	kept, fenced := false, false
	keep := func(now bool) {
		if now != kept {
			b.WriteString(map[bool]string{true: ".PP\n.nf\n.RS 4\n", false: ".RE\n.fi\n.PP\n"}[now])
			kept = now
		}
	}
	blank := false
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.TrimRight(line, "\r\n ")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			keep(fenced)
			blank = false
			continue
		}
		heading := strings.TrimLeft(line, "#")
		switch {
		case line == "":
			blank = true
			continue
		case !fenced && heading != line && strings.HasPrefix(heading, " "):
			keep(false)
			fmt.Fprintf(b, ".SS %s\n", roffText(strings.TrimSpace(heading)))
			blank = false
			continue
		case fenced || strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "|"):
			if blank && kept {
				b.WriteString("\n")
			}
			keep(true)
		default:
			if keep(false); blank || strings.HasPrefix(line, "- ") {
				b.WriteString(".PP\n")
			}
		}
		blank = false
		if kept {
			line = strings.TrimPrefix(line, "  ")
		}
		b.WriteString(roffText(line) + "\n")
	}
	keep(false)
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "'", `\(aq`, `"`, `\(dq`)

// roffText escapes one line.
func roffText(line string) string {
	line = roffEscapes.Replace(strings.ReplaceAll(line, "\n", " "))
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
