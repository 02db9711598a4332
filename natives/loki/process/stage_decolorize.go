package process

import (
	"context"
	"regexp"
	"strings"
)

// DecolorizeArguments of stage.decolorize, which has none.
type DecolorizeArguments struct{}

// ansi matches what terminals take for a command, such as the change of a
// colour. It is what github.com/acarl005/stripansi looks for.
var ansi = regexp.MustCompile("[\u001B\u009B][[\\]()#;?]*(?:(?:(?:[a-zA-Z\\d]*(?:;[a-zA-Z\\d]*)*)?\u0007)|(?:(?:\\d{1,4}(?:;\\d{0,4})*)?[\\dA-PRZcf-ntqry=><~]))")

// decolorizeStage removes what colours lines.
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
