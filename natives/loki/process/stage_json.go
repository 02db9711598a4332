package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jmespath-community/go-jmespath"

	"github.com/weir-run/weir/engine/scan"
)

// JSONArguments are the arguments of stage.json.
type JSONArguments struct {
	// Values to extract, by name: a JMESPath expression; an empty expression means the
	// name itself.
	Expressions map[string]string `alloy:"expressions,attr,optional"`
	// A regular expression; members of the object whose names match are extracted under
	// their own names.
	Regex string `alloy:"regex,attr,optional"`
	// The extracted value to read instead of the line.
	Source *string `alloy:"source,attr,optional"`
	// Whether lines are dropped that are no JSON object.
	DropMalformed bool `alloy:"drop_malformed,attr,optional"`
}

// Validate checks that the expressions compile.
func (a *JSONArguments) Validate() error {
	var errs []error
	if len(a.Expressions) == 0 && a.Regex == "" {
		errs = append(errs, errors.New("there is nothing to extract: set expressions, regex or both"))
	}
	errs = append(errs, optionalRegexp("regex", a.Regex), notEmpty(a.Source))
	for _, name := range slices.Sorted(maps.Keys(a.Expressions)) {
		if _, err := jmespath.Compile(a.expression(name)); err != nil {
			errs = append(errs, fmt.Errorf("expressions: cannot compile %s = %q as JMESPath: %w", name, a.Expressions[name], err))
		}
	}
	return errors.Join(errs...)
}

func (a *JSONArguments) expression(name string) string {
	if e := a.Expressions[name]; e != "" {
		return e
	}
	return name
}

// jsonStage reads JSON. Expressions that are a simple path are found by scanning
// the text. The object is decoded only if there are other expressions.
type jsonStage struct {
	source   int
	drop     bool
	object   scan.Object
	names    []int // the slots of the paths
	searches []search
	matching
}

// search is an expression that is not a simple path.
type search struct {
	slot int
	expr jmespath.JMESPath
}

func (a *JSONArguments) compile(c *compiler) (stage, error) {
	s := &jsonStage{source: -1, drop: a.DropMalformed}
	for _, name := range slices.Sorted(maps.Keys(a.Expressions)) {
		slot, wanted := c.write(name)
		if !wanted {
			continue
		}
		if way, ok := cutJMESPath(a.expression(name)); ok {
			s.object.Add(way, len(s.names))
			s.names = append(s.names, slot)
			continue
		}
		e, err := jmespath.Compile(a.expression(name))
		if err != nil {
			return nil, err
		}
		s.searches = append(s.searches, search{slot, e})
	}
	s.matching = newMatching(c, a.Regex)
	if a.Source != nil {
		s.source = c.read(*a.Source)
	}
	return s, nil
}

func (s *jsonStage) run(_ context.Context, p *pass) {
	if len(s.names) == 0 && len(s.searches) == 0 && s.matching.idle() && !s.drop {
		return
	}
	found := make([]scan.Value, len(s.names))
	kept := func(row int) bool {
		in, ok := p.source(s.source, row)
		if !ok {
			return true
		}
		clear(found)
		if !s.object.Find(in, found) {
			return !s.drop
		}
		for i, v := range found {
			p.set(s.names[i], row, fromJSON(v))
		}
		if len(s.searches) > 0 {
			s.search(p, row, in)
		}
		if !s.matching.idle() {
			scan.Members(in, func(name string, v scan.Value) {
				if v.Kind != scan.Missing {
					s.matching.set(p, row, name, fromJSON(v))
				}
			})
		}
		return true
	}
	if s.drop {
		p.drop("malformed_json", kept)
		return
	}
	for _, r := range p.rows {
		kept(r)
	}
}

func (s *jsonStage) search(p *pass, row int, in string) {
	var object map[string]any
	if json.Unmarshal([]byte(in), &object) != nil {
		return // the number is out of range
	}
	for _, x := range s.searches {
		if v, err := x.expr.Search(object); err == nil {
			p.set(x.slot, row, fromSearch(v))
		}
	}
}

// fromSearch returns the extracted value for a result of JMESPath.
func fromSearch(v any) value {
	switch v := v.(type) {
	case nil:
		return value{kind: null}
	case string:
		return value{text, v}
	case bool:
		return value{truth, strconv.FormatBool(v)}
	case float64:
		return value{number, formatNumber(v)}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return value{}
	}
	return value{text, strings.TrimSuffix(b.String(), "\n")}
}

// cutJMESPath returns the path that an expression denotes. ok is false if the
// expression is more than names, separated by dots, and indexes.
func cutJMESPath(s string) (way []scan.Step, ok bool) {
	for first := true; s != ""; first = false {
		if !first && s[0] == '[' {
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return nil, false
			}
			n, err := strconv.Atoi(s[1:end])
			if err != nil || n < 0 || s[1] == '+' {
				return nil, false
			}
			way, s = append(way, scan.Step{Index: n}), s[end+1:]
			continue
		}
		if !first {
			if s[0] != '.' {
				return nil, false
			}
			s = s[1:]
		}
		var name string
		if name, s, ok = cutJMESName(s); !ok {
			return nil, false
		}
		way = append(way, scan.Step{Name: name, Index: -1})
	}
	return way, len(way) > 0
}

// cutJMESName returns the name at the beginning of s, bare or in double quotes,
// and the rest of s.
func cutJMESName(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s[1:], '"')
		if end < 0 || strings.Contains(s[1:1+end], `\`) {
			return "", "", false
		}
		return s[1 : 1+end], s[end+2:], true
	}
	n := 0
	for n < len(s) && (s[n] == '_' || 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z' || n > 0 && '0' <= s[n] && s[n] <= '9') {
		n++
	}
	return s[:n], s[n:], n > 0
}
