package process

import (
	"context"
	"errors"
	"text/template"
)

// TemplateArguments are the arguments of stage.template.
type TemplateArguments struct {
	// The extracted value to set; a template that gives nothing removes it.
	Source string `alloy:"source,attr"`
	// The template, in Go's syntax with the functions of sprig. It sees the
	// extracted values by name, the one of source as .Value, and the line as
	// .Entry.
	Template string `alloy:"template,attr"`
}

// Validate checks that there is a source and that the template can be parsed.
func (a *TemplateArguments) Validate() error {
	var errs []error
	if a.Source == "" {
		errs = append(errs, errors.New("source is empty: name the extracted value to set"))
	}
	_, err := parseTemplate("template", a.Template)
	return errors.Join(append(errs, err)...)
}

// templateStage sets an extracted value.
type templateStage struct {
	slot int
	t    *template.Template
	data *templateData
}

func (a *TemplateArguments) compile(c *compiler) (stage, error) {
	slot, wanted := c.write(a.Source)
	if !wanted {
		return idleStage{}, nil
	}
	t, err := parseTemplate("template", a.Template)
	if err != nil {
		return nil, err
	}
	return &templateStage{slot: slot, t: t, data: newTemplateData(c, t)}, nil
}

// idleStage replaces a stage whose result no later stage reads. It does nothing.
type idleStage struct{}

func (idleStage) run(context.Context, *pass) {}

func (s *templateStage) run(_ context.Context, p *pass) {
	data := *s.data // run is called by several goroutines at once
	data.to = nil
	var b bounded
	for _, r := range p.rows {
		td := data.fill(p, r)
		if v, ok := p.get(s.slot, r).str(); ok {
			td["Value"] = v
		}
		td["Entry"] = p.line[r]
		b.guard = p.guard()
		made, err := b.execute(s.t, td)
		if err != nil {
			if !errors.Is(err, errValue) {
				p.tooSlow(r)
			}
			continue // the template cannot process the value, which stays unchanged
		}
		v := value{text, made}
		if v.text == "" {
			v.kind = gone
		}
		p.set(s.slot, r, v)
	}
}
