//go:build !nologql

package logql

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"github.com/grafana/loki/v3/pkg/logql/log"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
)

// Linked reports whether this build has LogQL.
const Linked = true

// Pipeline is a parsed pipeline. It is immutable.
type Pipeline struct {
	src    string
	stages syntax.MultiStageExpr
}

// Parse parses the part of a log query after the selector. The error is an
// *Error.
func Parse(src string) (*Pipeline, error) {
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Offset: -1, Msg: `it is empty: write what comes after the selector of a query, such as "| json"`}
	}
	expr, err := parsed(src)
	if err != nil {
		return nil, err
	}
	out := &Pipeline{src, expr.MultiStages}
	if _, err := out.newStages(); err != nil {
		return nil, err
	}
	return out, nil
}

func parsed(src string) (*syntax.PipelineExpr, error) {
	// The selector is in a separate line, so that columns stay the same.
	expr, err := syntax.ParseLogSelector("{}\n"+src, false)
	if err != nil {
		return nil, foreign(src, err)
	}
	p, ok := expr.(*syntax.PipelineExpr)
	if !ok {
		return nil, &Error{Offset: -1, Msg: "it has no stage"}
	}
	return p, nil
}

// place matches the position of the error in Loki's messages.
var place = regexp.MustCompile(`^parse error(?: at line (\d+), col (\d+))? ?: (?:syntax error: )?`)

// foreign converts an error of Loki to an *Error.
func foreign(src string, err error) *Error {
	msg := err.Error()
	e := &Error{Source: src, Offset: -1, Msg: msg}
	if m := place.FindStringSubmatch(msg); m != nil {
		e.Msg = msg[len(m[0]):]
		if m[1] != "" {
			line, _ := strconv.Atoi(m[1])
			col, _ := strconv.Atoi(m[2])
			e.Offset = offset(src, line-1, col)
		}
	}
	switch {
	case strings.Contains(msg, "only log selector is supported"), strings.Contains(msg, "unexpected unwrap"), strings.Contains(msg, "RANGE"):
		e.Msg = "it is a metric query; metrics of lines are made by stage.metrics"
	case strings.HasPrefix(strings.TrimSpace(src), "{"):
		e.Msg = `it begins with a selector: write what comes after it only, and stage.match { selector = "…" } around the stage`
		e.Offset = len(src) - len(strings.TrimLeft(src, " \t\r\n"))
	}
	return e
}

// offset returns the offset in src of a line and a column, both counted from 1.
func offset(src string, line, col int) int {
	at := 0
	for ; line > 1; line-- {
		n := strings.IndexByte(src[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	for ; col > 1 && at < len(src) && src[at] != '\n'; col-- {
		_, size := utf8.DecodeRuneInString(src[at:])
		at += size
	}
	return at
}

// newStages returns stages for one goroutine, because they contain buffers.
// Creating them modifies the expression and reuses parts of it, so each machine
// has its own expression.
func (p *Pipeline) newStages() ([]log.Stage, error) {
	expr, err := parsed(p.src)
	if err != nil {
		return nil, err
	}
	made, err := expr.Pipeline()
	if err != nil {
		return nil, &Error{Offset: -1, Msg: place.ReplaceAllString(err.Error(), "")}
	}
	with, ok := made.(interface{ Stages() []log.Stage })
	if !ok { // no stage has an effect
		return nil, nil
	}
	return with.Stages(), nil
}

// ChangesStreams reports whether the pipeline may change the labels of the
// stream.
func (p *Pipeline) ChangesStreams() bool {
	return slices.ContainsFunc(p.stages, func(s syntax.StageExpr) bool {
		switch s.(type) {
		case *syntax.LineFilterExpr, *syntax.LabelFilterExpr, *syntax.LineParserExpr, *syntax.LogfmtParserExpr,
			*syntax.LineFmtExpr, *syntax.DecolorizeExpr:
			return false
		}
		return true
	})
}

// reads returns the labels that the stages read. ok is false if they are unknown,
// because a template can read all labels.
func (p *Pipeline) reads(stages []log.Stage) (names []string, ok bool) {
	for _, s := range stages {
		names = append(names, s.RequiredLabelNames()...)
	}
	for _, s := range p.stages {
		switch s := s.(type) {
		case *syntax.LineFmtExpr:
			if !namesAll(s.Value) {
				return nil, false
			}
		case *syntax.LabelFmtExpr:
			for _, f := range s.Formats {
				if !f.Rename && !namesAll(f.Value) {
					return nil, false
				}
			}
		}
	}
	return names, true
}

// namesAll reports whether a template reads labels only by their names and calls
// no function that may read other labels.
func namesAll(text string) bool {
	t := parse.New("")
	t.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := t.Parse(text, "", "", trees); err != nil || len(trees) > 1 {
		return false
	}
	return len(trees) == 0 || plain(trees[""].Root)
}

// plain reports whether a node is text, an action that consists of fields and
// functions, or a list of these.
func plain(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.ListNode:
		return n == nil || !slices.ContainsFunc(n.Nodes, func(n parse.Node) bool { return !plain(n) })
	case *parse.ActionNode:
		return plain(n.Pipe)
	case *parse.PipeNode:
		return len(n.Decl) == 0 && !slices.ContainsFunc(n.Cmds, func(c *parse.CommandNode) bool { return !plain(c) })
	case *parse.CommandNode:
		return !slices.ContainsFunc(n.Args, func(n parse.Node) bool { return !plain(n) })
	case *parse.FieldNode:
		return len(n.Ident) == 1
	case *parse.TextNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.IdentifierNode, *parse.CommentNode:
		return true
	}
	return false // a dot alone, a variable, a condition: these are not analysed further
}
