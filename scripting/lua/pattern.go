package lua

import (
	"errors"
	"fmt"
	"strings"
)

// The matcher of Lua patterns is a port of the one in Lua 5.1's lstrlib.c.
// gopher-lua's compiles the pattern on every call, allocates per step and
// cannot be stopped; this one allocates nothing and counts its steps.
//
// Manual: https://www.lua.org/manual/5.1/manual.html#5.4.1

const (
	maxCaptures   = 32
	maxMatchDepth = 200
	capUnfinished = -1
	capPosition   = -2
	stepsPerLook  = 1024
)

var errPattern = errors.New("malformed pattern")

// matcher matches one pattern against one string. look is asked every
// stepsPerLook steps and ends the match with its error.
type matcher struct {
	src, pat string
	level    int
	capture  [maxCaptures]struct{ start, len int }
	depth    int
	steps    int
	look     func() error
	err      error
}

func (m *matcher) fail(format string, args ...any) int {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
	return -1
}

func (m *matcher) step() bool {
	if m.steps++; m.steps%stepsPerLook == 0 {
		if err := m.look(); err != nil && m.err == nil {
			m.err = err
		}
	}
	return m.err == nil
}

// find looks for the pattern from init on; start is -1 when there is none.
func (m *matcher) find(init int) (start, end int) {
	p := 0
	anchor := len(m.pat) > 0 && m.pat[0] == '^'
	if anchor {
		p = 1
	}
	first := m.first(p)
	for s := init; s <= len(m.src); s++ {
		if first > 0 && !anchor {
			if s = m.skip(s, p, first); s < 0 {
				break
			}
		}
		m.level = 0
		if e := m.match(s, p); e >= 0 && m.err == nil {
			return s, e
		}
		if m.err != nil || anchor {
			break
		}
	}
	return -1, -1
}

// first returns where the class at p ends if a match needs a character of it
// first, 0 if that is not so or not as simple.
func (m *matcher) first(p int) int {
	if p >= len(m.pat) {
		return 0
	}
	switch m.pat[p] {
	case '(', ')', '$':
		return 0
	case '%':
		if p+1 >= len(m.pat) || m.pat[p+1] == 'b' || m.pat[p+1] == 'f' || '0' <= m.pat[p+1] && m.pat[p+1] <= '9' {
			return 0
		}
	}
	end := m.classEnd(p)
	if end < 0 || end < len(m.pat) && strings.IndexByte("?*-", m.pat[end]) >= 0 {
		return 0
	}
	return end
}

// skip returns where from s on a character is one of the class pat[p:ep], -1 when
// none is.
func (m *matcher) skip(s, p, ep int) int {
	for ; s < len(m.src); s++ {
		if m.single(s, p, ep) {
			return s
		}
		if (s+1)%stepsPerLook == 0 {
			if m.err = m.look(); m.err != nil {
				return -1
			}
		}
	}
	return -1
}

// match returns the end of a match of pat[p:] at s, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxMatchDepth {
		return m.fail("cannot match: the pattern is too complex")
	}
	end := m.matchOn(s, p)
	m.depth--
	return end
}

// matchOn is match; a repetition calls match for what comes after it.
func (m *matcher) matchOn(s, p int) int {
	for m.step() {
		if p >= len(m.pat) {
			return s
		}
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.startCapture(s, p+2, capPosition)
			}
			return m.startCapture(s, p+1, capUnfinished)
		case ')':
			return m.endCapture(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 >= len(m.pat) {
				return m.fail("%w (ends with %%)", errPattern)
			}
			switch c := m.pat[p+1]; {
			case c == 'b':
				if s = m.matchBalance(s, p+2); s < 0 {
					return -1
				}
				p += 4
				continue
			case c == 'f':
				p += 2
				if p >= len(m.pat) || m.pat[p] != '[' {
					return m.fail("missing '[' after %%f in pattern")
				}
				ep := m.classEnd(p)
				if ep < 0 {
					return -1
				}
				var prev, cur byte
				if s > 0 {
					prev = m.src[s-1]
				}
				if s < len(m.src) {
					cur = m.src[s]
				}
				if m.inSet(prev, p, ep-1) || !m.inSet(cur, p, ep-1) {
					return -1
				}
				p = ep
				continue
			case c >= '0' && c <= '9':
				if s = m.matchCapture(s, c); s < 0 {
					return -1
				}
				p += 2
				continue
			}
		}
		ep := m.classEnd(p)
		if ep < 0 {
			return -1
		}
		suffix := byte(0)
		if ep < len(m.pat) {
			suffix = m.pat[ep]
		}
		switch suffix {
		case '?':
			if s < len(m.src) && m.single(s, p, ep) {
				if r := m.match(s+1, ep+1); r >= 0 || m.err != nil {
					return r
				}
			}
			p = ep + 1
		case '*':
			return m.maxExpand(s, p, ep, 0)
		case '+':
			return m.maxExpand(s, p, ep, 1)
		case '-':
			return m.minExpand(s, p, ep)
		default:
			if s >= len(m.src) || !m.single(s, p, ep) {
				return -1
			}
			s++
			p = ep
		}
	}
	return -1
}

// classEnd returns where the class at p ends, -1 when it does not.
func (m *matcher) classEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			return m.fail("%w (ends with %%)", errPattern)
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				return m.fail("%w (missing ])", errPattern)
			}
			c := m.pat[p]
			p++
			if c == '%' {
				p++
			}
		}
		return p + 1
	}
	return p
}

func (m *matcher) single(s, p, ep int) bool {
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, ep-1)
	}
	return m.pat[p] == c
}

// inSet reports whether c is in the set pat[p:end+1], brackets included.
func (m *matcher) inSet(c byte, p, end int) bool {
	in := true
	p++
	if p < end && m.pat[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%' && p+1 < end+1:
			p++
			if inClass(c, m.pat[p]) {
				return in
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

// inClass reports whether c is in class %cl; letters are ASCII's.
func inClass(c, cl byte) bool {
	alpha := (c|0x20) >= 'a' && (c|0x20) <= 'z'
	digit := c >= '0' && c <= '9'
	var in bool
	switch cl | 0x20 {
	case 'a':
		in = alpha
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = digit
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 0x20 && c < 0x7f && !alpha && !digit
	case 's':
		in = c == ' ' || (c >= '\t' && c <= '\r')
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = alpha || digit
	case 'x':
		in = digit || ((c|0x20) >= 'a' && (c|0x20) <= 'f')
	case 'z':
		in = c == 0
	default:
		return cl == c
	}
	if cl >= 'A' && cl <= 'Z' {
		return !in
	}
	if cl < 'a' || cl > 'z' { // cl|0x20 made a letter of a sign
		return cl == c
	}
	return in
}

func (m *matcher) maxExpand(s, p, ep, least int) int {
	i := 0
	for s+i < len(m.src) && m.single(s+i, p, ep) {
		if !m.step() {
			return -1
		}
		i++
	}
	for ; i >= least; i-- {
		if r := m.match(s+i, ep+1); r >= 0 || m.err != nil {
			return r
		}
	}
	return -1
}

func (m *matcher) minExpand(s, p, ep int) int {
	for {
		if r := m.match(s, ep+1); r >= 0 || m.err != nil {
			return r
		}
		if s >= len(m.src) || !m.single(s, p, ep) || !m.step() {
			return -1
		}
		s++
	}
}

func (m *matcher) startCapture(s, p, what int) int {
	if m.level >= maxCaptures {
		return m.fail("cannot match: too many captures")
	}
	m.capture[m.level].start, m.capture[m.level].len = s, what
	m.level++
	r := m.match(s, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) endCapture(s, p int) int {
	l := -1
	for i := m.level - 1; i >= 0; i-- {
		if m.capture[i].len == capUnfinished {
			l = i
			break
		}
	}
	if l < 0 {
		return m.fail("invalid pattern capture")
	}
	m.capture[l].len = s - m.capture[l].start
	r := m.match(s, p)
	if r < 0 {
		m.capture[l].len = capUnfinished
	}
	return r
}

func (m *matcher) matchBalance(s, p int) int {
	if p+1 >= len(m.pat) {
		return m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	open, end, depth := m.pat[p], m.pat[p+1], 1
	for i := s + 1; i < len(m.src); i++ {
		if !m.step() {
			return -1
		}
		switch m.src[i] {
		case end:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

func (m *matcher) matchCapture(s int, c byte) int {
	l := int(c) - '1'
	if l < 0 || l >= m.level || m.capture[l].len == capUnfinished {
		return m.fail("invalid capture index")
	}
	n := m.capture[l].len
	if n < 0 || len(m.src)-s < n || m.src[m.capture[l].start:m.capture[l].start+n] != m.src[s:s+n] {
		return -1
	}
	return s + n
}

// captures returns how many values a match of [s,e) yields: its captures, or
// the whole match when it has none.
func (m *matcher) captures() int { return max(m.level, 1) }

// captured returns capture i; pos is its position, 1-based, when it is a
// position capture.
func (m *matcher) captured(i, s, e int) (text string, pos int, err error) {
	if i >= m.level {
		if i != 0 {
			return "", 0, errors.New("invalid capture index")
		}
		return m.src[s:e], 0, nil
	}
	c := m.capture[i]
	switch c.len {
	case capPosition:
		return "", c.start + 1, nil
	case capUnfinished:
		return "", 0, errors.New("unfinished capture")
	}
	return m.src[c.start : c.start+c.len], 0, nil
}
