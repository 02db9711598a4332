package scripting

// defineHTTP refuses http = { ["POST /hook"] = function(req, ctx) … end }.
func defineHTTP(d *definer, field RawField) {
	d.fail(field.Line, "cannot use http in weir.%s: it is not supported yet, there is poll, run and every", d.kind)
}
