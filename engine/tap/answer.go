package tap

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/weir-run/weir/engine/component"
)

// Beginning is a line in the format calls: what the component has at the beginning.
type Beginning struct {
	Kind  string         `json:"kind"` // "begin"
	State map[string]any `json:"state,omitempty"`
}

// Answered is a line in the format calls: an answer that the component got. It comes
// before the call that got it.
type Answered struct {
	Kind string `json:"kind"` // "answer"
	component.Answer
}

// secretField matches the names of fields that usually contain secrets.
const secretField = `[^"'=&\s]*(?:token|secret|passw|credential|api_?key|private_?key|session|cookie)[^"'=&\s]*`

var (
	secretKey  = regexp.MustCompile(`(?i)^` + secretField + `$`)
	secretJSON = regexp.MustCompile(`(?i)("` + secretField + `"\s*:\s*")(?:[^"\\]|\\.)*(")`)
	secretForm = regexp.MustCompile(`(?i)(\b` + secretField + `=)[^&\s"',;]+`)
)

// Begin appends the state of the component in the format calls.
func (p *Printer) Begin(dst []byte, state map[string]any) []byte {
	masked, _ := p.masks.value(state, false).(map[string]any)
	return appendEvent(dst, Beginning{Kind: "begin", State: masked})
}

// Answers appends answers in the format calls. Secrets that a script has declared are
// masked from now on, and in all of these answers.
func (p *Printer) Answers(dst []byte, all []component.Answer) []byte {
	for _, a := range all {
		if a.Kind == component.AnswerSecret || a.Secret {
			p.declare(a.Text)
		}
	}
	for _, a := range all {
		if a.Kind != component.AnswerSecret {
			dst = appendEvent(dst, Answered{"answer", p.masks.answer(a)})
		}
	}
	return dst
}

// declare adds a secret to those that are masked.
func (p *Printer) declare(secret string) {
	secret = strings.TrimSpace(secret)
	if secret == "" || p.masks.whole[secret] || len(p.declared) == maxDeclared {
		return
	}
	p.declared = append(p.declared, secret)
	p.Mask(p.secrets)
}

// maxDeclared is the most secrets of a script that are known. Later ones are usually
// newer values of the same secret.
const maxDeclared = 1000

// answer returns a masked answer.
func (m *masks) answer(a component.Answer) component.Answer {
	key := a.Key
	if a.Kind == component.AnswerHTTP {
		// Secrets are escaped in a URL, in which a plus may be a space.
		if plain, err := url.QueryUnescape(strings.ReplaceAll(key, "+", "%2B")); err == nil {
			key = plain
		}
		if spaces := strings.ReplaceAll(key, "+", " "); m.mask(spaces) != spaces {
			key = spaces
		}
	}
	a.Key = m.text(key)
	a.Error = component.HideURLs(m.text(a.Error))
	if a.Secret {
		a.Text = masked
	}
	a.Text, a.Stderr = m.text(a.Text), m.text(a.Stderr)
	if a.Header != nil {
		header := map[string]string{}
		for name, v := range a.Header {
			header[name] = m.text(v)
			if secretKey.MatchString(name) {
				header[name] = masked
			}
		}
		a.Header = header
	}
	return a
}

// text masks secrets, and the values of fields whose names say that they are secrets.
func (m *masks) text(s string) string {
	s = m.mask(s)
	s = secretJSON.ReplaceAllString(s, "${1}"+masked+"${2}")
	return secretForm.ReplaceAllString(s, "${1}"+masked)
}

// value masks a value as JSON has it. Below a name that says that it is a secret, it
// masks all strings.
func (m *masks) value(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret {
			return masked
		}
		return m.text(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = m.value(e, secret)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[m.text(k)] = m.value(e, secret || secretKey.MatchString(k))
		}
		return out
	}
	return v
}
