package selector

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSource is the maximum length of a selector, as in Loki.
const maxSource = 128 << 10

// Parse parses a selector. The error is an *Error.
func Parse(src string) (*Selector, error) {
	p := &parser{scanner: scanner{src: strings.TrimPrefix(src, "\ufeff")}, sel: new(Selector)}
	switch {
	case len(src) >= maxSource:
		return nil, &Error{Msg: fmt.Sprintf("it has %d bytes, more than the %d allowed", len(src), maxSource-1)}
	case !utf8.ValidString(src) || strings.IndexByte(src, 0) >= 0:
		return nil, &Error{Msg: "it is no UTF-8 text"}
	}
	p.advance()
	p.parseSelector()
	if p.err != nil {
		return nil, p.err
	}
	return p.sel, nil
}

type parser struct {
	scanner
	sel *Selector
	tok token
	err *Error // the first error
}

// advance moves to the next token. After an error, all tokens are the end.
func (p *parser) advance() {
	t, msg := p.next()
	if msg != "" {
		p.fail(t.at, "%s", msg)
	}
	if p.err != nil {
		t = token{at: t.at}
	}
	p.tok = t
}

func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Source: p.src, Offset: at, Msg: fmt.Sprintf(format, args...)}
	}
	p.tok = token{at: at}
}

// isSign reports whether the token is the given operator or bracket.
func (p *parser) isSign(s string) bool { return p.tok.kind == sign && p.tok.s == s }

// want skips an operator or bracket.
func (p *parser) want(s, what string) {
	if !p.isSign(s) {
		p.unexpected(fmt.Sprintf("%s %s", s, what))
		return
	}
	p.advance()
}

// unexpected records an error: either that want is missing, or what the user
// probably meant.
func (p *parser) unexpected(want string) {
	if p.err != nil {
		return
	}
	have := strconv.Quote(p.tok.s)
	if p.tok.kind == end {
		have = "the end"
	}
	p.fail(p.tok.at, "want %s, have %s", want, have)
}

// parseSelector parses a selector, with or without parentheses.
func (p *parser) parseSelector() {
	depth := 0
	for ; p.isSign("("); depth++ {
		p.advance()
	}
	if p.tok.kind == name {
		p.fail(p.tok.at, `want a stream selector such as {app="api"}: metrics of lines are made by stage.metrics, not by LogQL`)
	}
	p.want("{", `of a stream selector such as {app="api"}`)
	p.matchers()
	for p.tok.kind == sign && isFilter(p.tok.s) {
		p.filter()
	}
	for ; depth > 0; depth-- {
		p.notStage()
		p.want(")", "that ends what ( began")
	}
	p.notStage()
	if p.tok.kind != end {
		p.unexpected(`a line filter such as |= "text", or the end`)
	}
}

// notStage refuses the stages that LogQL allows after line filters.
func (p *parser) notStage() {
	switch {
	case p.isSign("|"):
		at := p.tok.at
		p.advance()
		p.fail(at, `after line filters there are no stages such as "| %s" here: write them as stage.logql { pipeline = "| %s" }`, p.stage(), p.stage())
	case p.isSign("["):
		p.fail(p.tok.at, "a range belongs to a metric query; metrics of lines are made by stage.metrics")
	}
}

// stage returns the name of a stage for a message.
func (p *parser) stage() string {
	if p.tok.kind == name {
		return p.tok.s
	}
	return "json"
}

// matchers parses label matchers up to the closing brace.
func (p *parser) matchers() {
	if p.isSign("}") {
		p.advance()
		return
	}
	for {
		p.matcher()
		if !p.isSign(",") {
			break
		}
		p.advance()
	}
	p.want("}", "or a comma")
}

func (p *parser) matcher() {
	label := p.tok
	if label.kind != name {
		p.unexpected("a label")
		return
	}
	p.advance()
	op := p.tok.s
	switch {
	case p.tok.kind != sign || op != "=" && op != "!=" && op != "=~" && op != "!~":
		p.unexpected("=, !=, =~ or !~ after the label")
		return
	}
	p.advance()
	at := p.tok.at
	value, ok := p.quoted("a value in quotes")
	if !ok {
		return
	}
	m, err := newMatcher(label.s, op, value)
	if err != nil {
		p.fail(at, "cannot compile regular expression: %v", err)
		return
	}
	p.sel.matchers = append(p.sel.matchers, m)
}

// quoted skips a string and returns its value.
func (p *parser) quoted(want string) (s string, ok bool) {
	if p.tok.kind != text {
		p.unexpected(want)
		return "", false
	}
	if p.tok.s[0] == '`' {
		s = p.tok.s[1 : len(p.tok.s)-1]
	} else {
		var err error
		if s, err = strconv.Unquote(p.tok.s); err != nil {
			p.fail(p.tok.at, "the string has an escape that there is not; in backquotes there are none")
			return "", false
		}
	}
	p.advance()
	return s, true
}

// filter parses one line filter with its operands.
func (p *parser) filter() {
	f := filter{op: p.tok.s}
	p.advance()
	for more := true; more; {
		at := p.tok.at
		o, ok := p.operand()
		if !ok {
			return
		}
		more = p.tok.kind == name && strings.ToLower(p.tok.s) == "or"
		if o.ip && !f.negative() && (more || len(f.operands) > 0) {
			p.fail(at, `ip() is no operand of "or": Loki takes it for plain text there; write a stage.match for each`)
			return
		}
		if err := f.add(o); err != nil {
			p.fail(at, "%v", err)
			return
		}
		if more {
			p.advance()
		}
	}
	p.sel.filters = append(p.sel.filters, f)
}

// operand parses a string, or ip("…").
func (p *parser) operand() (o operand, ok bool) {
	if p.tok.kind == name && strings.ToLower(p.tok.s) == "ip" && strings.HasPrefix(strings.TrimLeft(p.src[p.pos:], " \t\r\n"), "(") {
		p.advance()
		p.advance()
		o.ip = true
		if o.text, ok = p.quoted(`an address in quotes, such as ip("10.0.0.0/8")`); ok {
			p.want(")", "after the address")
		}
		return o, p.err == nil
	}
	o.text, ok = p.quoted(`a string in quotes, or ip("…")`)
	return o, ok
}
