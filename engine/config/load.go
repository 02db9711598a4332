package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/parser"

	"github.com/weir-run/weir/engine/files"
)

// Config is the result of Load.
type Config struct {
	// Path is the file or directory that was loaded.
	Path string
	// Files maps paths to contents, for snippets.
	Files map[string]string
	// Blocks are the top-level blocks without syntax errors, from all files in the
	// order of the file names. IDs are unique. The ID of a duplicate block cannot
	// be referred to, but the block is checked for errors.
	Blocks []*Block
	// Broken are the IDs of blocks with syntax errors. They are not in Blocks.
	// References to them are not errors.
	Broken []string

	valid   bool // it was parsed without errors
	patches int  // how many versions before it were parsed in part; see Reload
}

// Dir returns the directory of the files of c.
func (c *Config) Dir() string {
	for file := range c.Files {
		return filepath.Dir(file)
	}
	if Pattern(c.Path) == c.Path { // it is a file
		return filepath.Dir(c.Path)
	}
	return c.Path
}

// Load reads a config file, or all *.alloy files of a directory (without
// subdirectories) as one config. The file may be a FIFO, as in the shell's
// <(command). If there are errors, the Config contains everything that could be
// read and is never nil, so that the caller can report more errors.
func Load(path string) (*Config, Diagnostics) {
	texts, ds := readFiles(path, files.ReadArgument)
	c := &Config{Path: path, Files: texts}
	return c, append(ds, c.parse(nil)...)
}

// ReadFiles returns the input of Config.Reload by path: the contents of a file, or of
// all *.alloy files of a directory.
func ReadFiles(path string) (map[string]string, Diagnostics) { return readFiles(path, files.Read) }

// reader is files.Read or files.ReadArgument.
type reader func(path string, limit int64) ([]byte, error)

func readFiles(path string, read reader) (texts map[string]string, ds Diagnostics) {
	texts = map[string]string{}
	names, err := configFiles(path)
	if err != nil {
		ds.add(Span{File: path}, err.Error(), "")
		return texts, ds
	}
	if len(names) == 0 {
		ds.add(Span{File: path}, "no *.alloy file in this directory", "name a config file, or a directory that has some")
		return texts, ds
	}
	total := 0
	for _, name := range names {
		text, err := read(name, maxFileSize)
		if err != nil {
			ds.add(Span{File: name}, fmt.Sprintf("cannot read the config: %v", err), "")
			if errors.Is(err, files.ErrHung) {
				break // reading each of the remaining files would block too
			}
			continue
		}
		if total += len(text); total > maxTotalSize {
			ds.add(Span{File: path}, fmt.Sprintf("cannot read the config directory: its *.alloy files are larger than %d MiB together", maxTotalSize>>20), "")
			return map[string]string{}, ds
		}
		texts[name] = string(text)
	}
	return texts, ds
}

// Parse is like Load, for files given as a map of path to content.
func Parse(files map[string]string) (*Config, Diagnostics) {
	c := &Config{Files: files}
	ds := c.parse(nil)
	return c, ds
}

// Limits for the files of a config. They are far higher than any config needs
// that a person or a tool has written.
const (
	maxFileSize  = 1 << 20  // bytes per file
	maxTotalSize = 16 << 20 // bytes in all files of a directory
	maxFiles     = 1_000    // *.alloy files of a directory
	maxEntries   = 20_000   // all files of a directory
)

func configFiles(path string) ([]string, error) {
	fi, err := files.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	if !fi.IsDir() {
		return []string{path}, nil
	}
	entries, err := files.List(path, maxEntries)
	if err != nil {
		return nil, fmt.Errorf("cannot read the config directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		// A directory may be called x.alloy, and the files of a ConfigMap are
		// symbolic links. A dangling link is reported when it is read.
		name := filepath.Join(path, e.Name())
		if !IsConfigFile(name) || e.IsDir() || e.Type()&fs.ModeSymlink != 0 && files.IsDir(name) {
			continue
		}
		if len(names) == maxFiles {
			return nil, fmt.Errorf("cannot read the config directory: it has more than %d *.alloy files", maxFiles)
		}
		names = append(names, name)
	}
	return names, nil
}

// parse sets Blocks and Broken from Files. old is an earlier version, or nil.
func (c *Config) parse(old *Config) (ds Diagnostics) {
	names := make([]string, 0, len(c.Files))
	for name := range c.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	before := old.versions()
	if before != nil {
		c.patches = old.patches + 1
	}
	seen := map[string]*Block{}
	for _, name := range names {
		blocks, ok := before[name].patch(name, c.Files[name])
		if !ok {
			var errs Diagnostics
			blocks, errs = c.parseWhole(name)
			ds = append(ds, errs...)
		}
		for _, b := range blocks {
			if first, ok := seen[b.ID]; ok {
				ds.add(b.Span, fmt.Sprintf("block %s is defined twice", b.ID),
					fmt.Sprintf("first defined at %s; give one of them another label", first.Span))
				b.setAside(len(c.Blocks))
			}
			seen[b.ID] = b
			c.Blocks = append(c.Blocks, b)
		}
	}
	c.valid = len(ds) == 0
	return ds.Sort()
}

// parseWhole returns the blocks of a file.
func (c *Config) parseWhole(name string) (blocks []*Block, ds Diagnostics) {
	body, broken, ds := parseFile(name, c.Files[name])
	c.Broken = append(c.Broken, broken...)
	correct := len(ds) == 0
	for _, stmt := range body {
		switch stmt := stmt.(type) {
		case *ast.AttributeStmt:
			ds.add(spanOf(stmt.Name), fmt.Sprintf("attribute %q is not inside a block", stmt.Name.Name),
				"the top level of a config has only blocks")
		case *ast.BlockStmt:
			b := newBlock(stmt)
			if correct {
				b.from(c.Files[name], 0)
			}
			blocks = append(blocks, b)
		}
	}
	return blocks, ds
}

// parseFile returns the statements of a file. If there are syntax errors, it
// parses again without the top-level statements that contain them, and returns
// the IDs of these statements.
func parseFile(name, text string) (body ast.Body, broken []string, ds Diagnostics) {
	if len(text) > maxFileSize {
		ds.add(Span{File: name}, fmt.Sprintf("config has %d bytes, more than the %d allowed", len(text), maxFileSize), "")
		return nil, nil, ds
	}
	if d := notText(name, text); d != nil {
		return nil, nil, Diagnostics{*d}
	}
	if _, ds := scan(name, text); len(ds) > 0 {
		return nil, nil, ds
	}
	file, err := parser.ParseFile(name, []byte(text))
	if err == nil {
		return file.Body, nil, nil
	}
	// After a missing quote, nothing can be parsed reliably.
	closed, quotes := closeQuotes(name, text)
	stmts, ds := scan(name, closed.text)
	if len(ds) > 0 {
		return nil, nil, ds
	}
	// The parser cannot recover after its first error and then reports
	// consequential errors, so statements are parsed one by one.
	rest := []byte(closed.text)
	ds = quotes
	for i, s := range stmts {
		errs := slices.DeleteFunc(closed.originals(s.errors(name, closed.text), text), func(d Diagnostic) bool {
			return slices.ContainsFunc(quotes, func(q Diagnostic) bool { return q.Line == d.Line })
		})
		quoted := slices.ContainsFunc(closed.inserts, func(in insert) bool {
			return closed.original(s.start) <= in.at && in.at <= closed.original(s.end)
		})
		if len(errs) == 0 && !quoted {
			continue
		}
		if len(errs) == 1 && errs[0].Msg == errUnclosed {
			errs[0].Span = s.header
			errs[0].Msg = fmt.Sprintf("block %s is not closed", s.id)
			errs[0].Hint = "a } is missing at the end of the file"
			if s.unclosed {
				errs[0].Hint = fmt.Sprintf("a } is missing before line %d, where %s begins", stmts[i+1].line, stmts[i+1].id)
			}
		}
		for k := range errs {
			if errs[k].Hint == "" {
				errs[k].Hint = syntaxHints[errs[k].Msg]
			}
			errs[k].Msg = tokens.Replace(errs[k].Msg)
		}
		ds = append(ds, errs...)
		broken = append(broken, s.id)
		for k := s.start; k < s.end; k++ {
			if rest[k] != '\n' {
				rest[k] = ' '
			}
		}
	}
	if file, err = parser.ParseFile(name, rest); err == nil {
		return file.Body, broken, ds
	}
	// The error is between the statements.
	for _, s := range stmts {
		broken = append(broken, s.id)
	}
	return nil, broken, append(ds, closed.originals(fromSyntax(err, Span{File: name}), text)...)
}

// notText returns a diagnostic if the file is not UTF-8 text, and nil if it is.
// The scanner would report each invalid byte.
func notText(name, text string) *Diagnostic {
	at := 0
	for at < len(text) {
		if r, n := utf8.DecodeRuneInString(text[at:]); r == utf8.RuneError && n == 1 || r == 0 {
			break
		} else {
			at += n
		}
	}
	if at == len(text) {
		return nil
	}
	d := &Diagnostic{Span: Span{File: name, Line: 1 + strings.Count(text[:at], "\n"), Col: at - strings.LastIndexByte(text[:at], '\n')},
		Msg: "the file is not UTF-8 text", Hint: "save it as UTF-8"}
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		d.Msg = "the file is UTF-16 text"
	}
	return d
}

// tokens replaces the parser's token names with words.
var tokens = strings.NewReplacer(
	"got TERMINATOR", "got the end of the line", "expected TERMINATOR", "expected the end of the line",
	"got EOF", "got the end of the file", "got IDENT", "got a name", "got NUMBER", "got a number", "got FLOAT", "got a number",
	"got STRING", "got a string", "got BOOL", "got true or false", "got NULL", "got null", "got ILLEGAL", "got a character that means nothing here",
	"expected IDENT", "expected a name", "identifier, got", "a name, got",
)

const errUnclosed = "expected }, got EOF"

// syntaxHints are hints for syntax from other languages.
var syntaxHints = map[string]string{
	"expected block label, got IDENT":     "a label is written in quotes",
	"expected block body, got STRING":     "a block has at most one label",
	"illegal character U+003A ':'":        "an attribute is written as name = value",
	"cannot use a block as an expression": "separate the elements of a list by commas; a map is written {name = value}",
}

// errors parses a single statement.
func (s statement) errors(name, text string) Diagnostics {
	_, err := parser.ParseFile(name, []byte(text[s.start:s.end]))
	if err == nil {
		return nil
	}
	ds := fromSyntax(err, Span{File: name, Line: 1, Col: 1})
	if len(ds) > 1 {
		if s.end-s.start <= maxRepaired {
			ds = repair(name, text[s.start:s.end])
		}
		// The end is missing because of an earlier error, or it will be reported
		// after that error is fixed.
		ds = slices.DeleteFunc(ds, func(d Diagnostic) bool { return strings.HasSuffix(d.Msg, ", got EOF") })
	}
	// The scanner has already reported the character.
	all := slices.Clone(ds)
	ds = slices.DeleteFunc(ds, func(d Diagnostic) bool {
		return strings.HasSuffix(d.Msg, ", got ILLEGAL") && slices.ContainsFunc(all, func(o Diagnostic) bool { return o.Span == d.Span && o.Msg != d.Msg })
	})
	shift := func(line, col *int) {
		if *line == 1 {
			*col += s.header.Col - 1
		}
		*line += s.line - 1
	}
	for i := range ds {
		shift(&ds[i].Line, &ds[i].Col)
		shift(&ds[i].EndLine, &ds[i].EndCol)
	}
	return ds
}

// Pattern returns the pattern to watch for changes of the config at path, in
// the form of package watch: the file, or the files of the directory that Load
// reads. It does not block for long: a path that does not respond is treated as
// a file.
func Pattern(path string) string {
	fi, err := files.StatSoon(path)
	if err == nil && fi.IsDir() {
		return filepath.Join(path, "*.alloy")
	}
	return path
}

// IsConfigFile reports whether Load would read a path in a directory: it ends
// in .alloy and is neither a lock file of Emacs, .#x.alloy, nor a file for
// metadata that macOS creates on foreign file systems, ._x.alloy.
func IsConfigFile(path string) bool {
	name := filepath.Base(path)
	return strings.HasSuffix(name, ".alloy") && !strings.HasPrefix(name, ".#") && !strings.HasPrefix(name, "._")
}
