package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weir/starter"
	"github.com/weir-run/weir/cmd/weir/top"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service/telemetry"
	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting/scripttest"
)

// shells are the supported shells for completion scripts.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a shell's completion script",
		Long: `Print a shell script that completes weir's commands, flags, component names and
config files. For bash, the package bash-completion must be installed.

For the current shell:

  bash         source <(weir completion bash)
  zsh          source <(weir completion zsh)
  fish         weir completion fish | source
  powershell   weir completion powershell | Out-String | Invoke-Expression

For all new shells, write it to the directory that the shell searches:

  bash         weir completion bash > /etc/bash_completion.d/weir
  zsh          weir completion zsh > "${fpath[1]}/_weir"
  fish         weir completion fish > ~/.config/fish/completions/weir.fish
  powershell   add the line above to $PROFILE`,
		Example: `  source <(weir completion bash)
  weir completion fish | source`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return errors.New("name one shell: " + strings.Join(shells, ", "))
			case !slices.Contains(shells, args[0]):
				return fmt.Errorf("there is no completion for %s, only for %s", args[0], strings.Join(shells, ", "))
			}
			return nil
		},
		ValidArgs: shells,
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(t.out, true)
			case "zsh":
				return root.GenZshCompletion(t.out)
			case "fish":
				return root.GenFishCompletion(t.out, true)
			}
			return root.GenPowerShellCompletionWithDesc(t.out)
		}),
	}
}

// The number of configs that a command takes.
const (
	oneConfig = iota
	manyConfigs
)

// configFiles completes config files and the directories that lead to them.
func configFiles(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if n == oneConfig && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []cobra.Completion{"alloy"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// flagValues are the possible values of flags, by command.
var flagValues = map[string][]string{
	"weir graph --format":         graphFormats,
	"weir new component --lang":   starter.Languages(),
	"weir new component --kind":   starter.Kinds(),
	"weir new component --signal": starter.Signals(),
	"weir new project --lang":     starter.Languages(),
	"weir doc --lang":             {"both", "lua", "js"},
	"weir repl --lang":            {"lua", "js"},
	"weir journal stats --format": journalFormats,
	"weir run --input-format":     scripttest.InputFormats,
	"weir run --log.format":       telemetry.Formats,
	"weir audit --format":         auditFormats,
	"weir quarantine ls --format": stateFormats,
	"weir state ls --format":      stateFormats,
	"weir tap --format":           tap.Formats,
	"weir test --format":          formats,
	"weir top --sort":             top.Sorts(),
}

// completeFlags completes the values of the flags of a command and of its
// subcommands.
func completeFlags(cmd *cobra.Command) {
	for _, name := range []string{"format", "input-format", "kind", "lang", "log.format", "scripts", "signal", "sort", "storage.path"} {
		complete := cobra.CompletionFunc(directories)
		if values := flagValues[cmd.CommandPath()+" --"+name]; values != nil {
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		}
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	for _, c := range cmd.Commands() {
		completeFlags(c)
	}
}

func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// componentNames completes names of components, with the first sentence of each
// manual. If source is set, it completes only the components that 'weir
// components --source' can print.
func componentNames(scripts *string, source *bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		dir, err := scriptsDir(*scripts, ".")
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		catalogs, err := usable(dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer closePlugins(catalogs)
		for _, c := range catalogs {
			for _, name := range c.Names() {
				if shipped, _ := shippedFiles(name); *source && shipped == "" {
					continue
				}
				if r, ok := c.Lookup(name); ok && strings.HasPrefix(name, typed) {
					out = append(out, cobra.CompletionWithDesc(name, config.Printable(firstSentence(r.Doc.Summary))))
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
