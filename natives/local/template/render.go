package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/weir-run/weir/engine/component"
)

// maxOutput is the maximum size of a rendered file in bytes.
const maxOutput = 64 << 20

// parse compiles a template. The functions see no values.
func parse(name, text string) (*template.Template, error) {
	t, err := template.New(name).Funcs(functions(context.Background(), nil, nil)).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the template: %w", err)
	}
	return t, nil
}

// render executes a template. A missing name in the data is an error, as a missing
// key is one for getv.
func (a *Arguments) render(ctx context.Context, t *template.Template) ([]byte, error) {
	values := store{}
	for k, v := range a.Values {
		values[k] = v.Value
	}
	data, _ := plain(a.Data)
	t, err := t.Clone()
	if err != nil {
		return nil, err
	}
	out := &limited{}
	if err := t.Funcs(functions(ctx, values, a.Env)).Option("missingkey=error").Execute(out, data); err != nil {
		return nil, fmt.Errorf("cannot render: %w", err)
	}
	return out.buf.Bytes(), nil
}

// limited takes at most maxOutput bytes.
type limited struct{ buf bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.buf.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("the file would have more than %d bytes", maxOutput)
	}
	return l.buf.Write(p)
}

// plain returns a value of the config with strings instead of secrets, and the
// secrets that are in it.
func plain(v any) (out any, secrets []string) {
	switch v := v.(type) {
	case component.Secret:
		return string(v), []string{string(v)}
	case component.OptionalSecret:
		if v.IsSecret {
			return v.Value, []string{v.Value}
		}
		return v.Value, nil
	case map[string]component.OptionalSecret:
		m := make(map[string]any, len(v))
		for k, e := range v {
			var more []string
			m[k], more = plain(e)
			secrets = append(secrets, more...)
		}
		return m, secrets
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			var more []string
			m[k], more = plain(e)
			secrets = append(secrets, more...)
		}
		return m, secrets
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			var more []string
			l[i], more = plain(e)
			secrets = append(secrets, more...)
		}
		return l, secrets
	}
	return v, nil
}

// hide returns an error without the secrets that are in its text: of a template, for
// example, which cannot convert a secret to a number.
func (a *Arguments) hide(err error) error {
	if err == nil {
		return nil
	}
	text := component.HideURLs(err.Error())
	secrets := a.secrets()
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may contain another
	for _, s := range secrets {
		for _, line := range append([]string{s}, strings.Split(s, "\n")...) {
			if line = strings.TrimSpace(line); line != "" {
				text = strings.ReplaceAll(text, line, "(secret)")
			}
		}
	}
	return errors.New(component.Shorten(text))
}
