package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/cmd/weir/starter"
)

func newProjectCommand(t *terminal) *cobra.Command {
	c := starter.Component{}
	cmd := &cobra.Command{
		Use:   "project DIR",
		Short: "Create a config, a script, its test, a Makefile and a CI workflow",
		Long: `Create a project in a directory, which may exist:

  config.alloy                  a config that scrapes weir's own metrics, passes them
                                through the script, and prints them
  scripts/app/tidy.lua          the script, and next to it its test
  Makefile                      the targets check, test and run
  .github/workflows/check.yml   a workflow for GitHub Actions that builds weir, runs
                                'weir check' and 'weir test', and stores a JUnit report
  README.md, .gitignore         a description, and what does not belong into git

and the editor set-up that 'weir new component' describes. Existing files are not
changed: if one of the files above exists, nothing is created.`,
		Example: `  weir new project collector
  weir new project --lang=ts .`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("name the directory of the project, such as 'weir new project collector'")
			case len(args) > 1:
				return fmt.Errorf("new project takes one directory, not %d", len(args))
			case args[0] == "":
				return errors.New("the name of the directory is empty; write . for the current directory")
			}
			return checkNew(cmd, c)
		},
		ValidArgsFunction: directories,
		RunE: failed(func(_ *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return cannotStart(fmt.Errorf("cannot find the directory of the project: %w", err))
			}
			files := starter.Project(c.Language)
			for _, f := range starter.ProjectComponent(c.Language).Files() {
				f.Path = "scripts/" + f.Path
				files = append(files, f)
			}
			if err := createFiles(t, dir, files); err != nil {
				return err
			}
			if err := createEditorSetup(t, starter.ProjectComponent(c.Language), filepath.Join(dir, "scripts")); err != nil {
				return err
			}
			change := ""
			if here := fromHere(dir); here != "." {
				change = "  cd " + quoted(here) + "\n"
			}
			_, err = fmt.Fprintf(t.out, "\nNext, try these commands:\n\n%s  make test\n  make run\n", change)
			return err
		}),
	}
	languageFlag(cmd, &c.Language)
	return cmd
}
