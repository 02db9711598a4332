package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
)

// maxStdin limits the size of standard input. config.Format has a lower limit.
const maxStdin = 2 << 20

func fmtCommand(t *terminal) *cobra.Command {
	f := formatter{t: t}
	cmd := &cobra.Command{
		Use:   "fmt [-w | -t] FILE|DIR…",
		Short: "Format configs",
		Long: `Format configs in the standard style; comments are kept. Without flags, print the
formatted file; - is the standard input. With -w, write changed files atomically,
keep their owner and permissions, and list them. With -t, list files that are not
formatted; if there are any, the exit code is 1. For a directory, format all
*.alloy files in it and in its subdirectories, except in directories whose names
begin with a dot.

Syntax errors are reported with their positions; such files are not changed, and
the exit code is 1.`,
		Example: `  weir fmt config.alloy
  weir fmt -w /etc/weir
  weir fmt -t .
  weir fmt - < config.alloy`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name files or directories to format, or - for standard input")
			}
			if f.write && f.test {
				return errors.New("-w writes and -t does not: give one of them")
			}
			return nil
		},
		ValidArgsFunction: configFiles(manyConfigs),
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if err := f.argument(arg, cmd.InOrStdin()); err != nil {
					return err
				}
			}
			return f.end()
		}),
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "write the files instead of printing them")
	cmd.Flags().BoolVarP(&f.test, "test", "t", false, "only list the files that are not formatted")
	return cmd
}

// formatter formats files and counts the results.
type formatter struct {
	t           *terminal
	write, test bool

	unformatted int // found by test
	failed      int // files with mistakes
}

func (f *formatter) argument(arg string, stdin io.Reader) error {
	if arg == "-" {
		if f.write {
			return cannotStart(errors.New("standard input cannot be written: give a file with -w"))
		}
		b, err := io.ReadAll(io.LimitReader(stdin, maxStdin))
		if err != nil {
			return fmt.Errorf("cannot read standard input: %w", err)
		}
		return f.text("<stdin>", string(b), nil)
	}
	fi, err := os.Stat(arg)
	if err != nil {
		return cannotStart(err)
	}
	if !fi.IsDir() {
		return f.file(arg)
	}
	if !f.write && !f.test {
		return cannotStart(fmt.Errorf("%s is a directory: say -w to write its files, or -t to list those that are not formatted", arg))
	}
	root := arg
	if l, err := os.Lstat(arg); err == nil && l.Mode()&fs.ModeSymlink != 0 {
		root += string(filepath.Separator) // so that the walk begins at the target of the link
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !config.IsConfigFile(path):
			return nil
		}
		if fi, err := os.Stat(path); err != nil || fi.IsDir() { // a broken link, or a link to a directory
			return err
		}
		return f.file(path)
	})
}

func (f *formatter) file(path string) error {
	b, err := files.ReadArgument(path, 16<<20)
	if err != nil {
		return err
	}
	return f.text(path, string(b), func(formatted string) error { return files.Rewrite(path, formatted) })
}

func (f *formatter) text(name, text string, write func(string) error) error {
	formatted, ds := config.Format(name, text)
	if len(ds) > 0 {
		f.failed++
		return ds.Write(f.t.err, map[string]string{name: text}, f.t.errColor)
	}
	switch {
	case !f.write && !f.test:
		_, err := io.WriteString(f.t.out, formatted)
		return err
	case formatted == text:
		return nil
	case f.test:
		f.unformatted++
	default:
		if err := write(formatted); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(f.t.out, config.Printable(name))
	return err
}

// end returns the error that determines the exit code.
func (f *formatter) end() error {
	if f.failed > 0 {
		fmt.Fprintln(f.t.err, count(f.failed, "file")+" with mistakes left alone")
	}
	if f.unformatted > 0 {
		fmt.Fprintln(f.t.err, count(f.unformatted, "file")+" not formatted; weir fmt -w formats them")
	}
	if f.failed+f.unformatted > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}
