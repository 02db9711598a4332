package secretfilter

import (
	_ "embed" // the default rules
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/weir-run/weir/engine/files"
)

// defaultRules are the unchanged rules of Gitleaks v8.30.1.
//
//go:embed gitleaks.toml
var defaultRules []byte

// maxExtends is the maximum depth of files that extend each other, as in
// Gitleaks.
const maxExtends = 2

// maxRules is the maximum size of a file of rules, in bytes.
const maxRules = 4 << 20

// fileConfig is the part of a Gitleaks configuration that affects lines.
//
// Format: https://github.com/gitleaks/gitleaks#configuration
type fileConfig struct {
	Extend struct {
		Path          string
		URL           string
		UseDefault    bool
		DisabledRules []string
	}
	Rules      []fileRule
	Allowlist  *fileAllowlist // the older form of Allowlists
	Allowlists []fileAllowlist
}

type fileRule struct {
	ID          string
	Regex       string
	Path        string
	SecretGroup int
	Entropy     float64
	Keywords    []string
	Allowlist   *fileAllowlist
	Allowlists  []fileAllowlist
	Required    []struct{ ID string }
	SkipReport  bool
}

type fileAllowlist struct {
	TargetRules []string
	Condition   string
	Commits     []string
	Paths       []string
	RegexTarget string
	Regexes     []string
	StopWords   []string
}

// parseConfig returns the rules of a Gitleaks configuration and the files that it
// extends. The error contains all errors, joined.
func parseConfig(text []byte) (*detectors, []string, error) {
	f, extended, err := readConfig(text, 0)
	if err != nil {
		return nil, extended, err
	}
	rs, err := f.compile()
	return rs, extended, err
}

var defaultDetectors = sync.OnceValue(func() *detectors {
	rs, _, err := parseConfig(defaultRules)
	if err != nil {
		panic("BUG: cannot read the default rules: " + err.Error())
	}
	return rs
})

// readConfig decodes a configuration and merges the configuration that it
// extends.
func readConfig(text []byte, depth int) (f *fileConfig, extended []string, err error) {
	f = new(fileConfig)
	if err := toml.Unmarshal(text, f); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, col := at.Position()
			return nil, nil, fmt.Errorf("%d:%d: %w", row, col, err)
		}
		return nil, nil, err
	}
	if f.Allowlist != nil {
		if len(f.Allowlists) > 0 {
			return nil, nil, errors.New("[allowlist] and [[allowlists]] cannot be used together: use only [[allowlists]]")
		}
		f.Allowlists = []fileAllowlist{*f.Allowlist}
	}
	if depth == maxExtends {
		return f, nil, nil
	}
	base := defaultRules
	switch {
	case f.Extend.URL != "":
		return nil, nil, errors.New("extend.url is not supported: download the file and use extend.path")
	case f.Extend.UseDefault && f.Extend.Path != "":
		return nil, nil, errors.New("extend.path and extend.useDefault cannot be used together")
	case f.Extend.Path != "":
		extended = append(extended, f.Extend.Path)
		if base, err = files.Read(f.Extend.Path, maxRules); err != nil {
			return nil, extended, fmt.Errorf("cannot read extend.path: %w", err)
		}
	case !f.Extend.UseDefault:
		return f, nil, nil
	}
	b, more, err := readConfig(base, depth+1)
	extended = append(extended, more...)
	if err != nil {
		return nil, extended, fmt.Errorf("cannot extend %q: %w", f.Extend.Path, err)
	}
	f.merge(b)
	return f, extended, nil
}

// merge adds the rules of base. Rules of f override those with the same ID.
func (f *fileConfig) merge(base *fileConfig) {
	for _, b := range base.Rules {
		if slices.Contains(f.Extend.DisabledRules, b.ID) {
			continue
		}
		i := slices.IndexFunc(f.Rules, func(r fileRule) bool { return r.ID == b.ID })
		if i < 0 {
			f.Rules = append(f.Rules, b)
			continue
		}
		f.Rules[i] = f.Rules[i].overlay(&b)
	}
	f.Allowlists = append(f.Allowlists, base.Allowlists...)
}

// overlay returns base, overridden by the settings of r.
func (r *fileRule) overlay(base *fileRule) fileRule {
	m := *base
	if r.Regex != "" {
		m.Regex = r.Regex
	}
	if r.Path != "" {
		m.Path = r.Path
	}
	if r.SecretGroup != 0 {
		m.SecretGroup = r.SecretGroup
	}
	if r.Entropy != 0 {
		m.Entropy = r.Entropy
	}
	m.Keywords = slices.Concat(base.Keywords, r.Keywords)
	m.Allowlists = slices.Concat(base.allowlists(), r.allowlists())
	m.Allowlist = nil
	m.Required = slices.Concat(base.Required, r.Required)
	return m
}

func (r *fileRule) allowlists() []fileAllowlist {
	if r.Allowlist != nil {
		return append([]fileAllowlist{*r.Allowlist}, r.Allowlists...)
	}
	return r.Allowlists
}

func (f *fileConfig) compile() (*detectors, error) {
	var errs []error
	add := func(where string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	rs := new(detectors)
	targeted := map[string][]*allowlist{}
	for i, a := range f.Allowlists {
		al, err := a.compile()
		add(fmt.Sprintf("allowlists %d", i+1), err)
		for _, id := range a.TargetRules {
			if al != nil {
				targeted[id] = append(targeted[id], al)
			}
			if !slices.ContainsFunc(f.Rules, func(r fileRule) bool { return r.ID == id }) {
				add(fmt.Sprintf("allowlists %d", i+1), fmt.Errorf("there is no rule %q", id))
			}
		}
		if al != nil && len(a.TargetRules) == 0 {
			rs.allow = append(rs.allow, al)
		}
	}
	words := map[string][]int{}
	for i, fr := range f.Rules {
		where := fmt.Sprintf("rule %q", fr.ID)
		r, err := fr.compile(where, add)
		add(where, err)
		if fr.ID == "" {
			add(fmt.Sprintf("rule %d", i+1), errors.New("it has no id"))
		}
		if r == nil || err != nil || slices.ContainsFunc(f.Rules[i+1:], func(r fileRule) bool { return r.ID == fr.ID }) {
			continue // the rule cannot find anything in a line, or another rule replaces it
		}
		r.allow = append(r.allow, targeted[fr.ID]...)
		for _, k := range fr.Keywords {
			words[strings.ToLower(k)] = append(words[strings.ToLower(k)], len(rs.rules))
		}
		if len(fr.Keywords) == 0 {
			rs.always = append(rs.always, len(rs.rules))
		}
		rs.rules = append(rs.rules, r)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	rs.words = newScanner(words)
	return rs, nil
}

// compile returns nil for a rule that cannot find anything in a line, which has
// no path.
func (r *fileRule) compile(where string, add func(string, error)) (*rule, error) {
	var allow []*allowlist
	if r.Allowlist != nil && len(r.Allowlists) > 0 {
		return nil, errors.New("[rules.allowlist] and [[rules.allowlists]] cannot be used together: use only [[rules.allowlists]]")
	}
	for i, a := range r.allowlists() {
		al, err := a.compile()
		add(fmt.Sprintf("%s: allowlists %d", where, i+1), err)
		if al != nil {
			allow = append(allow, al)
		}
	}
	switch {
	case len(r.Required) > 0:
		return nil, errors.New("[[rules.required]] is not supported: a line is looked at by itself; write one regex for both parts")
	case r.Regex == "" && r.Path == "":
		return nil, errors.New("it has no regex")
	}
	if r.Path != "" {
		path, err := regexp.Compile(r.Path)
		if err != nil {
			return nil, fmt.Errorf("cannot parse path: %w", err)
		}
		if !path.MatchString("") {
			return nil, nil
		}
	}
	if r.Regex == "" || r.SkipReport {
		return nil, nil
	}
	tree, err := syntax.Parse(r.Regex, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("cannot parse regex: %w", err)
	}
	if r.SecretGroup > tree.MaxCap() || r.SecretGroup < 0 {
		return nil, fmt.Errorf("secretGroup is %d, but the regex has %d groups", r.SecretGroup, tree.MaxCap())
	}
	return newRule(r, tree, allow), nil
}

// compile returns nil for a list that cannot allow anything in a line, which
// belongs to no file and no commit.
func (a *fileAllowlist) compile() (*allowlist, error) {
	l := new(allowlist)
	switch strings.ToUpper(a.Condition) {
	case "AND", "&&":
		l.all = true
	case "", "OR", "||":
	default:
		return nil, fmt.Errorf("unknown condition %q, want \"AND\" or \"OR\"", a.Condition)
	}
	switch a.RegexTarget {
	case "", "secret":
	case "match", "line":
		l.target = a.RegexTarget
	default:
		return nil, fmt.Errorf("unknown regexTarget %q, want \"secret\", \"match\" or \"line\"", a.RegexTarget)
	}
	if len(a.Commits)+len(a.Paths)+len(a.Regexes)+len(a.StopWords) == 0 {
		return nil, errors.New("it is empty: write commits, paths, regexes or stopwords")
	}
	for _, re := range a.Regexes {
		if _, err := syntax.Parse(re, syntax.Perl); err != nil {
			return nil, fmt.Errorf("cannot parse a regex: %w", err)
		}
	}
	if l.all && len(a.Commits)+len(a.Paths) > 0 {
		return nil, nil
	}
	if len(a.Regexes) > 0 {
		l.regex = lazily("(?:" + strings.Join(a.Regexes, ")|(?:") + ")")
	}
	for _, w := range a.StopWords {
		l.stop = append(l.stop, strings.ToLower(w))
	}
	return l, nil
}
