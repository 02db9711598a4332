package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/peterh/liner"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/scripttest"
)

// repl reads statements and prints what they evaluate to.
type repl struct {
	t      *terminal
	prompt *scripttest.Prompt
	name   string // of the language, in the prompt

	pending string // the lines of an incomplete statement
	number  int    // of the last statement
	failed  bool   // a statement failed
	ended   bool   // by :quit
	written error  // of the output
}

// replCommands are the commands of the prompt and how many arguments each takes at most.
var replCommands = map[string]int{"batch": 1, "load": 1, "reset": 0, "help": 0, "quit": 0}

const replHelp = `:batch [N]    print the records that are left in batch, at most N (default: 20)
:load FILE    evaluate a file
:reset        start again: batch as it was, no variables
:help         print this list
:quit         end; so does Ctrl-D

batch is a batch and ctx is that of a hook. 'weir help' lists the pages about the API.
`

// print prints a line of a script, or a result.
func (r *repl) print(line string) {
	if _, err := fmt.Fprintln(r.t.out, config.Printable(line)); err != nil && r.written == nil {
		r.written = fmt.Errorf("cannot write the output: %w", err)
	}
}

// fail prints why a statement or a command failed.
func (r *repl) fail(err error) {
	r.failed = true
	for _, e := range flat(err) {
		fmt.Fprintln(r.t.err, paint(r.t.errColor, "31", config.Printable(e.Error())))
	}
}

// line adds a line of the input.
func (r *repl) line(ctx context.Context, line string) {
	if command, ok := strings.CutPrefix(strings.TrimSpace(line), ":"); ok && r.pending == "" {
		if err := r.command(ctx, strings.Fields(command)); err != nil {
			r.fail(err)
		}
		return
	}
	text := r.pending + line
	if strings.TrimSpace(text) == "" {
		return
	}
	if r.pending == "" {
		r.number++
	}
	if err := r.evaluate(ctx, scripting.File{Name: fmt.Sprintf("input%d", r.number), Text: text}); errors.Is(err, scripting.ErrIncomplete) {
		r.pending = text + "\n"
		return
	} else if err != nil {
		r.fail(err)
	}
	r.pending = ""
}

// evaluate evaluates a statement, which Ctrl-C stops.
func (r *repl) evaluate(ctx context.Context, f scripting.File) error {
	if len(f.Text) > scripting.MaxFileSize {
		return fmt.Errorf("cannot evaluate %s: it is larger than %d KiB", f.Name, scripting.MaxFileSize>>10)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	shown, lost, err := r.prompt.Eval(ctx, f)
	if shown != "" {
		r.print(shown)
	}
	if lost {
		err = errors.Join(err, errors.New("the VM was replaced: batch is as it was, and the variables of earlier statements are gone"))
	}
	return err
}

// command runs a command of the prompt.
func (r *repl) command(ctx context.Context, words []string) error {
	name := ""
	if len(words) > 0 {
		name = words[0]
	}
	most, known := replCommands[name]
	switch {
	case !known:
		return fmt.Errorf("there is no command :%s; :help lists the commands", name)
	case len(words)-1 > most:
		return fmt.Errorf("cannot use %q after :%s; :help lists the commands", strings.Join(words[1+most:], " "), name)
	}
	switch name {
	case "help":
		r.print(strings.TrimSuffix(replHelp, "\n"))
	case "quit":
		r.ended = true
	case "reset":
		setup, err := r.prompt.Reset(ctx)
		return errors.Join(err, setup)
	case "load":
		if len(words) == 1 {
			return errors.New(":load needs the name of a file")
		}
		text, err := files.ReadArgument(words[1], scripting.MaxFileSize)
		if err != nil {
			return fmt.Errorf("cannot read the file: %w", err)
		}
		return r.evaluate(ctx, scripting.File{Name: filepath.ToSlash(words[1]), Text: string(text)})
	case "batch":
		return r.batch(words[1:])
	}
	return nil
}

// batch prints the records of the batch that are left.
func (r *repl) batch(words []string) error {
	limit := 20
	if len(words) > 0 {
		var err error
		if limit, err = strconv.Atoi(words[0]); err != nil || limit < 1 {
			return fmt.Errorf("cannot use :batch %s: write a number of records", words[0])
		}
	}
	rows, more := r.prompt.Rows(limit)
	for _, row := range rows {
		r.print(row)
	}
	switch {
	case more > 0:
		r.print(fmt.Sprintf("… and %d more", more))
	case len(rows) == 0:
		r.print("no records")
	}
	return nil
}

// end returns the error of the command after the last line.
func (r *repl) end() error {
	switch {
	case r.written != nil:
		return r.written
	case r.failed:
		return &exitError{code: exitFailed}
	}
	return nil
}

// read evaluates the lines of an input that is not a terminal.
func (r *repl) read(ctx context.Context, stdin io.Reader) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	in := bufio.NewReader(stdin)
	for !r.ended && r.written == nil {
		line, err := in.ReadString('\n')
		if line != "" {
			r.line(ctx, strings.TrimRight(line, "\r\n"))
		}
		if ctx.Err() != nil {
			return errors.New("stopped by a signal")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read the statements: %w", err)
		}
	}
	if r.pending != "" {
		r.fail(fmt.Errorf("input%d: %w", r.number, scripting.ErrIncomplete))
	}
	return r.end()
}

// interact evaluates what the user types until they end the program.
func (r *repl) interact(ctx context.Context) error {
	l := liner.NewLiner()
	defer l.Close()
	l.SetCtrlCAborts(true)
	l.SetMultiLineMode(true)
	l.SetTabCompletionStyle(liner.TabPrints)
	l.SetWordCompleter(func(line string, pos int) (head string, words []string, tail string) {
		runes := []rune(line)
		head, tail = string(runes[:pos]), string(runes[pos:])
		_, typed := scripting.WordsAt(head, ".:")
		return strings.TrimSuffix(head, typed), r.complete(ctx, head), tail
	})
	h := openHistory(r.name)
	defer h.close()
	for _, line := range h.lines {
		l.AppendHistory(line)
	}
	if h.err != nil {
		r.t.printStatus("history", h.err.Error())
	}
	for !r.ended && r.written == nil {
		mark := fmt.Sprintf("%s %d> ", r.name, r.number+1)
		if r.pending != "" {
			mark = fmt.Sprintf("%*s| ", len(mark)-2, "")
		}
		line, err := l.Prompt(mark)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			r.pending = ""
			continue
		case err == io.EOF:
			fmt.Fprintln(r.t.out)
			return r.written
		case err != nil:
			return fmt.Errorf("cannot read from the terminal: %w", err)
		}
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, " ") {
			l.AppendHistory(line)
			h.add(line)
		}
		r.line(ctx, line)
	}
	return r.written
}

// complete returns the words that can stand at the end of a line.
func (r *repl) complete(ctx context.Context, head string) (words []string) {
	if r.pending == "" && strings.HasPrefix(head, ":") && !strings.Contains(head, " ") {
		for _, name := range slices.Sorted(maps.Keys(replCommands)) {
			if strings.HasPrefix(name, head[1:]) {
				words = append(words, name)
			}
		}
		return words
	}
	return r.prompt.Complete(ctx, r.pending+head)
}
