package config

import (
	"strings"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/parser"

	"github.com/weir-run/weir/engine/files"
)

// maxPatches is how many versions of a config may be parsed in part, each on the basis of
// the previous one. Each part keeps the positions of all lines before it in memory.
const maxPatches = 16

// Reload is like Load, for a path from which c may have been loaded. It refuses a FIFO,
// because its content has already been read. It does not change c.
//
// Usually, one block of many has changed, and parsing a large config takes most of the
// time of a reload. Therefore, Reload parses only what has changed, and takes over the
// blocks of c that are the same and in the same lines.
func (c *Config) Reload(path string) (*Config, Diagnostics) {
	texts, ds := readFiles(path, files.Read)
	next := &Config{Path: path, Files: texts}
	return next, append(ds, next.parse(c)...)
}

// version is a version of a file without errors.
type version struct {
	text   string
	blocks []*Block
}

// versions returns the files of c by name, if the next version of c may be parsed in part.
func (c *Config) versions() map[string]version {
	if c == nil || !c.valid || c.patches >= maxPatches {
		return nil
	}
	files := map[string]version{}
	for _, b := range c.Blocks {
		files[b.File] = version{c.Files[b.File], append(files[b.File].blocks, b)}
	}
	return files
}

// patch returns the blocks of a file on the basis of an earlier version. ok is false if the
// file must be parsed as a whole, which also finds all its errors.
func (old version) patch(name, text string) (blocks []*Block, ok bool) {
	before, known := old.text, old.blocks
	if len(known) == 0 || len(text) > maxFileSize {
		return nil, false
	}
	shared := min(len(text), len(before))
	same := 0 // bytes at the start
	for same < shared && text[same] == before[same] {
		same++
	}
	sameEnd := 0 // bytes at the end
	for sameEnd < shared-same && text[len(text)-1-sameEnd] == before[len(before)-1-sameEnd] {
		sameEnd++
	}
	grown := len(text) - len(before)

	// A block that stays begins with a line and ends with one, so that what is parsed cannot
	// belong to it.
	head := 0
	for head < len(known) && known[head].end() < same && strings.Contains(before[known[head].end():same], "\n") {
		head++
	}
	start := 0 // of what is parsed
	if head > 0 {
		start = known[head-1].end()
	}
	tail, end := len(known), len(text)
	for tail > head && known[tail-1].at > len(before)-sameEnd && before[known[tail-1].at-1] == '\n' {
		tail--
		end = known[tail].at + grown
	}
	if tail < len(known) && strings.Count(text[start:end], "\n") != strings.Count(before[start:end-grown], "\n") {
		tail, end = len(known), len(text)
	}
	for _, b := range known[:head] {
		blocks = append(blocks, b.in(text, b.at))
	}
	changed, ok := parsePart(name, text, start, end)
	if !ok {
		return nil, false
	}
	blocks = append(blocks, changed...)
	for _, b := range known[tail:] {
		blocks = append(blocks, b.in(text, b.at+grown))
	}
	return blocks, true
}

// parsePart returns the blocks in a part of a file. ok is false if there are errors in it.
func parsePart(name, text string, start, end int) (blocks []*Block, ok bool) {
	part := text[start:end]
	lines := strings.Count(text[:start], "\n") // for the positions
	padded := strings.Repeat("\n", lines) + part
	if notText(name, part) != nil {
		return nil, false
	}
	if _, ds := scan(name, padded); len(ds) > 0 {
		return nil, false
	}
	file, err := parser.ParseFile(name, []byte(padded))
	if err != nil {
		return nil, false
	}
	for _, stmt := range file.Body {
		stmt, isBlock := stmt.(*ast.BlockStmt)
		if !isBlock {
			return nil, false
		}
		blocks = append(blocks, newBlock(stmt).from(text, start-lines))
	}
	return blocks, true
}

// from sets the text of a block that was parsed from a part of a file. The offset of the
// file is more than that of the part by shift.
func (b *Block) from(file string, shift int) *Block {
	b.at = b.stmt.NamePos.Offset() + shift
	b.text = file[b.at : b.stmt.RCurlyPos.Offset()+1+shift]
	return b
}

// in returns the block as part of another version of its file that has it at an offset.
func (b *Block) in(file string, at int) *Block {
	return &Block{ID: b.ID, Name: b.Name, Label: b.Label, Span: b.Span, stmt: b.stmt, refs: b.refs, at: at, text: file[at : at+len(b.text)]}
}

// end returns the offset of the end of a block in its file.
func (b *Block) end() int { return b.at + len(b.text) }
