package main

import (
	"strings"

	"github.com/weir-run/weir/engine/config"
)

// checker checks the config at a path, as weir check does. It returns the texts of its
// files, by path, and what is wrong with them, both without secrets.
type checker func(path string) (files map[string]string, ds config.Diagnostics, err error)

// newChecker returns a checker for a running weir with these flags.
func newChecker(scripts, storage string, lookupEnv func(name string) (value string, ok bool)) checker {
	return func(path string) (map[string]string, config.Diagnostics, error) {
		var warned warnings
		o := checkOptions{storage: storage}
		e, err := lookingEngine(path, scripts, storage, scriptsUse{checks: warned.checks(), versions: o.versions(), lookupEnv: lookupEnv})
		if err != nil {
			return nil, nil, err
		}
		defer e.close()
		files, ds := e.CheckMasked(path)
		for _, w := range warned.sorted() {
			_, text, _ := strings.Cut(w.Error(), ": ") // after the position
			msg, detail, _ := strings.Cut(text, "\n")
			ds = append(ds, config.Diagnostic{Span: config.Span{File: w.File, Line: w.Line, Col: w.Col}, Severity: config.Warning, Msg: msg, Detail: detail})
		}
		return files, ds.Sort(), nil
	}
}
