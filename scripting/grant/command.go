package grant

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Command is a pattern of command lines: /usr/bin/df, or with arguments,
// "/usr/bin/systemctl is-active *". Create it with ParseCommand.
type Command struct {
	text string
	file string // with forward slashes
	args []string
	any  bool // any arguments
	more bool // any further arguments are allowed after args
	opts bool // further arguments may be options
}

// ParseCommand parses a pattern of command lines: the absolute path of a
// program, followed by the allowed arguments. A star stands for any text within
// an argument, and ... at the end for any further arguments. If nothing follows
// the path, any arguments are allowed. Arguments that contain spaces are in
// single quotes.
//
// An argument that begins with a minus can be an option with unintended
// effects, such as -delete of find. Therefore, a star at the beginning of an
// argument, or ..., does not match an option. Write -* for a single option, and
// -... for further arguments with options. After --, which ends the options of
// programs, they match any argument.
func ParseCommand(text string) (Command, error) {
	c, err := parseCommand(text)
	if err != nil {
		return Command{}, fmt.Errorf("cannot use %q as a command: %w", text, err)
	}
	return c, nil
}

func parseCommand(text string) (c Command, err error) {
	words, err := splitWords(text)
	if err != nil {
		return c, err
	}
	if len(words) == 0 {
		return c, errors.New("it is empty")
	}
	c = Command{text: text, args: words[1:], any: len(words) == 1}
	if c.file, err = cleanPath(words[0]); err != nil {
		return c, err
	}
	if strings.Contains(c.file, "*") {
		return c, errors.New("its path has a star: name the program")
	}
	if n := len(c.args); n > 0 && (c.args[n-1] == "..." || c.args[n-1] == "-...") {
		c.args, c.more, c.opts = c.args[:n-1], true, c.args[n-1] == "-..."
	}
	for _, a := range c.args {
		if a == "..." || a == "-..." {
			return c, fmt.Errorf("%s must be the last element", a)
		}
	}
	return c, nil
}

// splitWords splits at spaces outside of single quotes.
func splitWords(text string) (words []string, err error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	if strings.ContainsAny(text, "\x00\n\r\t") {
		return nil, errors.New("it has a tab, a line feed or a zero byte")
	}
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		if text[0] != '\'' {
			var w string
			w, text, _ = strings.Cut(text, " ")
			if strings.Contains(w, "'") {
				return nil, errors.New("it has a quote within a word")
			}
			words = append(words, w)
			continue
		}
		w, rest, closed := strings.Cut(text[1:], "'")
		if !closed || rest != "" && rest[0] != ' ' {
			return nil, errors.New("it has a quote that does not end a word")
		}
		words, text = append(words, w), rest
	}
	return words, nil
}

// String returns the pattern as written.
func (p Command) String() string { return p.text }

// Path returns the absolute path of the program.
func (p Command) Path() string { return filepath.FromSlash(p.file) }

// Is reports whether name refers to this program: it is its absolute path or
// the last part of it.
func (p Command) Is(name string) bool {
	name = filepath.ToSlash(name)
	return fold(name) == fold(p.file) || fold(name) == fold(path.Base(p.file))
}

// MatchArgs reports whether the program may be run with the arguments.
func (p Command) MatchArgs(args []string) bool {
	if p.any {
		return true
	}
	if len(args) < len(p.args) || len(args) > len(p.args) && !p.more {
		return false
	}
	operands := false
	for i, a := range p.args {
		if !glob(a, args[i]) || strings.HasPrefix(a, "*") && !operands && isOption(args[i]) {
			return false
		}
		operands = operands || a == "--"
	}
	return operands || p.opts || !slices.ContainsFunc(args[len(p.args):], isOption)
}

// isOption reports whether a program may interpret an argument as an option.
func isOption(arg string) bool {
	return strings.HasPrefix(arg, "-") || runtime.GOOS == "windows" && strings.HasPrefix(arg, "/")
}
