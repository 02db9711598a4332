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

// Config is what Load found.
type Config struct {
	// Path is what was loaded: a file or a directory.
	Path string
	// Files are the contents by path, for snippets.
	Files map[string]string
	// Blocks are the top-level blocks that parse, of all files, files in order
	// of their names. IDs are unique: a block that is defined twice has one that
	// nothing can refer to, so that its mistakes are found as well.
	Blocks []*Block
	// Broken are the IDs of blocks that are there but do not parse. They are
	// not in Blocks; references to them are no mistake.
	Broken []string
}

// Load reads a config file, or all *.alloy files of a directory (not of those
// below it) as one config. The file may be a FIFO, which is what <(command) of a
// shell is. With mistakes, the Config is what could be read, never nil, for the
// caller to look for more.
func Load(path string) (*Config, Diagnostics) { return load(path, files.ReadArgument) }

// Reload is Load of what was loaded before. A FIFO was read then, and is refused.
func Reload(path string) (*Config, Diagnostics) { return load(path, files.Read) }

func load(path string, read reader) (*Config, Diagnostics) {
	texts, ds := readFiles(path, read)
	c := &Config{Path: path, Files: texts}
	return c, append(ds, c.parse()...)
}

// ReadFiles returns what Reload parses: the contents of a file, or of all *.alloy
// files of a directory, by path.
func ReadFiles(path string) (map[string]string, Diagnostics) { return readFiles(path, files.Read) }

// reader is files.Read or one like it.
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
				break // each of the others would be waited for too
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

// Parse is Load of files that are given as path to content.
func Parse(files map[string]string) (*Config, Diagnostics) {
	c := &Config{Files: files}
	ds := c.parse()
	return c, ds
}

// Bounds of what is read as a config. They are far beyond any that was written by
// hand or by a tool.
const (
	maxFileSize  = 1 << 20  // of a file
	maxTotalSize = 16 << 20 // of all files of a directory
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
		// A directory may be called x.alloy, and a ConfigMap's files are symbolic
		// links. One that dangles is reported when it is read.
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

// parse fills Blocks and Broken from Files.
func (c *Config) parse() (ds Diagnostics) {
	names := make([]string, 0, len(c.Files))
	for name := range c.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	seen := map[string]*Block{}
	for _, name := range names {
		body, broken, errs := parseFile(name, c.Files[name])
		ds = append(ds, errs...)
		c.Broken = append(c.Broken, broken...)
		for _, stmt := range body {
			switch stmt := stmt.(type) {
			case *ast.AttributeStmt:
				ds.add(spanOf(stmt.Name), fmt.Sprintf("attribute %q is not inside a block", stmt.Name.Name),
					"the top level of a config has only blocks")
			case *ast.BlockStmt:
				b := newBlock(stmt)
				if first, ok := seen[b.ID]; ok {
					ds.add(b.Span, fmt.Sprintf("block %s is defined twice", b.ID),
						fmt.Sprintf("first defined at %s; give one of them another label", first.Span))
					b.setAside(len(c.Blocks))
				}
				seen[b.ID] = b
				c.Blocks = append(c.Blocks, b)
			}
		}
	}
	return ds.Sort()
}

// parseFile returns the statements of a file. When there are syntax errors it
// parses again without the top-level statements they are in, and returns the
// IDs of those.
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
	// Behind a quote that is missing nothing is what it seems to be.
	closed, quotes := closeQuotes(name, text)
	stmts, ds := scan(name, closed.text)
	if len(ds) > 0 {
		return nil, nil, ds
	}
	// The parser cannot go on after its first error and reports what follows
	// from that too, so statements are parsed one by one.
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
	// What is wrong is between the statements.
	for _, s := range stmts {
		broken = append(broken, s.id)
	}
	return nil, broken, append(ds, closed.originals(fromSyntax(err, Span{File: name}), text)...)
}

// notText is the diagnostic of a file that is no UTF-8 text, nil for one that
// is. The scanner would report each of its bytes.
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

// tokens makes words of the parser's token names.
var tokens = strings.NewReplacer(
	"got TERMINATOR", "got the end of the line", "expected TERMINATOR", "expected the end of the line",
	"got EOF", "got the end of the file", "got IDENT", "got a name", "got NUMBER", "got a number", "got FLOAT", "got a number",
	"got STRING", "got a string", "got BOOL", "got true or false", "got NULL", "got null", "got ILLEGAL", "got a character that means nothing here",
	"expected IDENT", "expected a name", "identifier, got", "a name, got",
)

const errUnclosed = "expected }, got EOF"

// syntaxHints are for what people write who come from other languages.
var syntaxHints = map[string]string{
	"expected block label, got IDENT":     "a label is written in quotes",
	"expected block body, got STRING":     "a block has at most one label",
	"illegal character U+003A ':'":        "an attribute is written as name = value",
	"cannot use a block as an expression": "separate the elements of a list by commas; a map is written {name = value}",
}

// errors parses a statement on its own.
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
		// The end is missing because the parser got lost, or it will be seen
		// once the rest is right.
		ds = slices.DeleteFunc(ds, func(d Diagnostic) bool { return strings.HasSuffix(d.Msg, ", got EOF") })
	}
	// The scanner has said what the character is.
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

// Pattern returns what to watch for changes of the config at path, as package
// watch understands it: the file, or the directory's files that Load reads. It does
// not wait for long: what does not answer is taken for a file.
func Pattern(path string) string {
	fi, err := files.StatSoon(path)
	if err == nil && fi.IsDir() {
		return filepath.Join(path, "*.alloy")
	}
	return path
}

// IsConfigFile reports whether a path is one that Load would read from a
// directory: one that ends in .alloy and is neither a lock of Emacs, .#x.alloy,
// nor what macOS keeps beside files of foreign disks, ._x.alloy.
func IsConfigFile(path string) bool {
	name := filepath.Base(path)
	return strings.HasSuffix(name, ".alloy") && !strings.HasPrefix(name, ".#") && !strings.HasPrefix(name, "._")
}
