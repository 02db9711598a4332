package js

import "fmt"

// maxRedeclared is the maximum number of names that a file may declare twice in
// a block. One is already an error; but for each, esbuild walks through the
// file to the first declaration and back, which takes minutes in a file full of
// them.
const maxRedeclared = 200

// checkRedeclared refuses a file that declares too many names twice. It reads
// declarations at the beginning of statements, including those in comments and
// strings. line is where the limit is exceeded.
func checkRedeclared(text string) (line int, err error) {
	r := redeclared{seen: map[declared]bool{}}
	r.open = append(r.open, 0)
	r.begins = true
	for l := range lines(text) {
		line++
		if r.line(l); r.again > maxRedeclared {
			return line, fmt.Errorf("cannot use a file that declares more than %d names twice: rename or remove them", maxRedeclared)
		}
	}
	return 0, nil
}

// declared is a name in a block.
type declared struct {
	block int
	name  string
}

type redeclared struct {
	seen   map[declared]bool
	open   []int // the blocks around a place
	blocks int
	again  int

	begins bool // a statement may begin here
	names  bool // the next word is a declared name
	list   int  // the depth at which a list of declarations continues; 0 if there is none
}

func (r *redeclared) line(l string) {
	for i := 0; i < len(l); {
		c := l[i]
		if isWord(c) {
			from := i
			for i < len(l) && isWord(l[i]) {
				i++
			}
			r.word(l[from:i])
			continue
		}
		i++
		switch c {
		case '(', '[', '{':
			r.blocks++
			r.open = append(r.open, r.blocks)
			r.begins, r.names = true, false
		case ')', ']', '}':
			if last := len(r.open) - 1; last > 0 {
				r.open = r.open[:last]
			}
			r.begins, r.names = true, false
			if r.list > len(r.open) {
				r.list = 0
			}
		case ';', ':', '\n', '\r':
			r.begins = true
			if c == ';' {
				r.list = 0
			}
		case ',':
			r.names = r.list == len(r.open)
		case ' ', '\t', '*':
		default:
			r.begins, r.names = false, false
		}
	}
}

// word processes a word: a keyword of a declaration, a declared name, or any
// other word.
func (r *redeclared) word(w string) {
	if r.names {
		r.names, r.begins = false, false
		at := declared{r.open[len(r.open)-1], w}
		if r.seen[at] {
			r.again++
		}
		r.seen[at] = true
		return
	}
	if !r.begins {
		return
	}
	switch w {
	case "let", "const", "using":
		r.names, r.list = true, len(r.open)
	case "class", "enum", "import":
		r.names, r.list = true, 0
	case "export", "default", "declare", "abstract", "async", "await":
	default:
		r.begins = w[0] == '@'
	}
}

// isWord reports whether a byte may be part of a name, including bytes of
// non-ASCII characters.
func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c == '#' || c == '\\' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
