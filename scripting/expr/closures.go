package expr

import (
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
)

// compiler turns a checked tree into closures.
type compiler struct {
	src  string
	conf *conf.Config
	err  *Error
}

// code is a compiled node: at most one of the functions is set, by what the
// node results in; none when only expr's machine can run it.
type code struct {
	b     func(*Sample) bool
	i     func(*Sample) int
	f     func(*Sample) float64
	s     func(*Sample) string
	fails bool // may fail on some sample
}

func (c *compiler) node(n ast.Node) code { return code{fails: true} }
