package scripting

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/grant"
)

// Needs are the external resources that a script needs. The script gets access
// to those of them that its block grants.
type Needs struct {
	Line  int          // where they were declared; 0 if nothing is needed
	HTTP  bool         // ctx.http
	URLs  []grant.URL  // that it requests; if empty, all granted URLs
	Env   []string     // ctx.env
	Read  bool         // ctx.read
	Files []grant.File // that it reads; if empty, all granted files
	Exec  bool         // ctx.exec
	// Programs are the names or paths of the programs that it runs. If it is
	// empty, it may run all granted programs.
	Programs []string
}

// NeedKinds are the keys of needs, in the order of the manual.
var NeedKinds = []string{"http", "env", "read", "exec"}

func defineNeeds(d *definer, field RawField) {
	m, ok := field.Value.(map[string]any)
	if l, isList := field.Value.([]any); isList && len(l) == 0 {
		ok = true // {} in Lua
	}
	if !ok {
		d.fail(field.Line, "cannot use %s as needs: it must be a table such as { http = true, env = { \"REGION\" } }", describe(field.Value))
		return
	}
	n := &d.def.Needs
	n.Line = field.Line
	for _, name := range sortedKeys(m) {
		v := m[name]
		switch name {
		case "http":
			n.HTTP, n.URLs = needPatterns(d, field.Line, name, v, "URLs", grant.ParseURL)
		case "read":
			n.Read, n.Files = needPatterns(d, field.Line, name, v, "files", grant.ParseFile)
		case "env":
			n.Env = needNames(d, field.Line, name, v, `{ "REGION" }`, grant.EnvName)
		case "exec":
			if b, ok := v.(bool); ok {
				n.Exec = b
				continue
			}
			n.Programs = needNames(d, field.Line, name, v, `{ "df" }`, programName)
			n.Exec = len(n.Programs) > 0
		case "listen":
			d.fail(field.Line, "cannot use needs.listen in weir.%s: nothing calls a %s from outside, it gets its data from other blocks", d.kind, d.kind)
		default:
			e := d.fail(field.Line, "cannot use %q in needs: there is %s", name, strings.Join(NeedKinds, ", "))
			e.Hint = config.DidYouMean(name, NeedKinds)
		}
	}
}

// needPatterns reads the value true, or a list of patterns.
func needPatterns[P any](d *definer, line int, name string, v any, what string, parse func(string) (P, error)) (all bool, ps []P) {
	if b, ok := v.(bool); ok {
		return b, nil
	}
	list, ok := stringList(v)
	if !ok || len(list) == 0 {
		d.fail(line, "cannot use %s as needs.%s: it must be true, or a list of the %s", describe(v), name, what)
		return false, nil
	}
	for _, s := range list {
		p, err := parse(s)
		if err != nil {
			d.fail(line, "needs.%s: %w", name, err)
			continue
		}
		ps = append(ps, p)
	}
	return len(ps) > 0, ps
}

// needNames reads a list of names.
func needNames(d *definer, line int, name string, v any, example string, valid func(string) bool) []string {
	list, ok := stringList(v)
	if !ok || len(list) == 0 {
		d.fail(line, "cannot use %s as needs.%s: it must be a list of names such as %s", describe(v), name, example)
		return nil
	}
	for _, s := range list {
		if !valid(s) {
			d.fail(line, "cannot use %q in needs.%s: write names such as %s", s, name, example)
			return nil
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// programName reports whether name is a program name without a path, or an
// absolute path.
func programName(name string) bool {
	return name != "" && !strings.ContainsAny(name, " *'\x00\n") && (filepath.IsAbs(name) || !strings.ContainsAny(name, `/\`) && name != "." && name != "..")
}

// None reports whether nothing is needed.
func (n Needs) None() bool { return !n.HTTP && !n.Read && !n.Exec && len(n.Env) == 0 }

// List returns the needs as text, such as `http https://geo.internal/*`.
func (n Needs) List() (out []string) {
	add := func(all bool, kind string, what []string) {
		if all && len(what) == 0 {
			out = append(out, kind)
		}
		for _, w := range what {
			out = append(out, fmt.Sprintf("%s %s", kind, w))
		}
	}
	add(n.HTTP, "http", texts(n.URLs))
	add(len(n.Env) > 0, "env", n.Env)
	add(n.Read, "read", texts(n.Files))
	add(n.Exec, "exec", n.Programs)
	return out
}

func texts[P fmt.Stringer](ps []P) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.String()
	}
	return out
}
