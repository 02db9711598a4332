package process

import (
	"context"
	"regexp"
	"strings"
)

// DecolorizeArguments are the arguments of stage.decolorize. It has no arguments.
type DecolorizeArguments struct{}

// ansi matches the escape sequences of terminals, such as a change of colour. The
// expression is the one of github.com/acarl005/stripansi.
var ansi = regexp.MustCompile("[\u001B\u009B][[\\]()#;?]*(?:(?:(?:[a-zA-Z\\d]*(?:;[a-zA-Z\\d]*)*)?\u0007)|(?:(?:\\d{1,4}(?:;\\d{0,4})*)?[\\dA-PRZcf-ntqry=><~]))")

// decolorizeStage removes escape sequences.
type decolorizeStage struct{}

func (a *DecolorizeArguments) compile(*compiler) (stage, error) { return decolorizeStage{}, nil }

func (decolorizeStage) run(_ context.Context, p *pass) {
	for _, r := range p.rows {
		l := p.line[r]
		if strings.IndexByte(l, 0x1b) < 0 && !strings.Contains(l, "\u009b") {
			continue
		}
		if plain := ansi.ReplaceAllLiteralString(l, ""); len(plain) < len(l) {
			p.setLine(r, plain)
		}
	}
}
