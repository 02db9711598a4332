package process

import (
	"context"
	"strings"
)

// WindowsEventArguments are the arguments of stage.windowsevent.
type WindowsEventArguments struct {
	MessageArguments `alloy:",squash"`
}

// windowsEventStage reads messages of Windows events. They consist of a
// description and sections, separated by empty lines. The title of a section, if
// any, is a prefix of the names in the section.
type windowsEventStage struct{ *named }

func (a *WindowsEventArguments) compile(c *compiler) (stage, error) {
	return windowsEventStage{c.named(a.MessageArguments)}, nil
}

// Text that is removed from names and from values.
var (
	inNames  = strings.NewReplacer("\t", "", "\r", "", "\n", "", " ", "")
	inValues = strings.NewReplacer("\t", "", "\r", "", "\n", "")
)

func (s windowsEventStage) run(_ context.Context, p *pass) {
	if s.idle {
		return
	}
	for _, r := range p.rows {
		in, ok := p.source(s.source, r)
		if !ok {
			continue
		}
		description, rest, _ := strings.Cut(in, "\r\n\r\n")
		s.put(p, r, "Description", description)
		for rest != "" {
			var section string
			section, rest, _ = strings.Cut(rest, "\r\n\r\n")
			s.section(p, r, strings.Split(section, "\r\n"))
		}
	}
}

func (s windowsEventStage) put(p *pass, row int, name, v string) {
	s.set(p, row, inNames.Replace(name), strings.TrimSpace(inValues.Replace(v)))
}

// section extracts the values from the lines of a section.
func (s windowsEventStage) section(p *pass, row int, lines []string) {
	title := ""
	for i := 0; i < len(lines); {
		name, v, ok := strings.Cut(lines[i], ":")
		i++
		switch {
		case !ok:
			continue
		case v == "":
			if i == 1 {
				title = name + "_"
			}
			continue
		}
		// Lines without a name continue the value.
		for i < len(lines) && lines[i] != "" && !strings.Contains(lines[i], ":") {
			v += "," + lines[i]
			i++
		}
		s.put(p, row, title+name, v)
	}
}
