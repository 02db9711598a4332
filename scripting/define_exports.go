package scripting

// maxExports is the maximum number of exports in a definition.
const maxExports = 64

// defineExports reads exports = { targets = weir.arg.targets { doc = … } }.
func defineExports(d *definer, field RawField) {
	exports := declared(field, "export", []string{"receiver"}, func(line int, format string, args ...any) { d.fail(line, format, args...) })
	if len(exports) > maxExports {
		d.fail(field.Line, "cannot use %d exports: the limit is %d", len(exports), maxExports)
	}
	for _, a := range exports {
		switch {
		case a.Kind == ArgBlock:
			d.fail(a.Line, "cannot export %q as a block: export a map, or several values", a.Name)
		case a.Default != nil:
			d.fail(a.Line, "cannot use default in export %q: it is there once ctx.export gave it; nodes that refer to it wait for that", a.Name)
		case a.Optional:
			d.fail(a.Line, "cannot use optional in export %q: nodes that refer to an export wait until ctx.export gave all of them", a.Name)
		}
	}
	d.def.Exports = exports
}
