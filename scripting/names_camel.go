package scripting

import "slices"

// Camel returns the function as JavaScript has it: what it is called, and the
// declared keys of its options and of its results, are camelCase. Names that
// are not declared, such as those of labels or of JSON, stay as they are.
func (f *Function) Camel() *Function {
	out := *f
	out.Name = CamelCase(f.Name)
	out.Params = camelParams(f.Params)
	out.Result.Fields = camelParams(f.Result.Fields)
	out.Result.Yields = camelParams(f.Result.Yields)
	out.Result.Of = camelParam(f.Result.Of)
	args := slices.ContainsFunc(f.Params, renames)
	result := Param{Kind: f.Result.Kind, Of: f.Result.Of, Fields: f.Result.Fields}
	if f.Fn == nil || !args && !renames(result) {
		return &out
	}
	renamed := func(call func([]Value) (Value, error), in []Value) (Value, error) {
		self := len(in) - len(f.Params) // a method's object
		for i := range f.Params {
			in[self+i] = f.Params[i].rename(in[self+i], CamelCase, keepName)
		}
		v, err := call(in)
		return result.rename(v, keepName, CamelCase), err
	}
	out.Fn = func(in []Value) (Value, error) { return renamed(f.Fn, in) }
	if f.Checked != nil {
		out.Checked = func(check func() error, in []Value) (Value, error) {
			return renamed(func(in []Value) (Value, error) { return f.Checked(check, in) }, in)
		}
	}
	return &out
}

func keepName(name string) string { return name }

// camelParams are parameters with what is declared in them in camelCase. Their
// own names are positions, not keys, but for those of fields.
func camelParams(ps []Param) []Param {
	out := slices.Clone(ps)
	for i := range out {
		out[i] = *camelParam(&out[i])
	}
	return out
}

func camelParam(p *Param) *Param {
	if p == nil {
		return nil
	}
	out := *p
	out.Name = CamelCase(p.Name)
	out.Of = camelParam(p.Of)
	out.Fields = camelParams(p.Fields)
	out.Or = camelParams(p.Or)
	if p.Call != nil {
		out.Call = p.Call.Camel()
	}
	return &out
}

// renames reports whether a value of p has keys that CamelCase changes.
func renames(p Param) bool {
	return slices.ContainsFunc(p.Fields, func(f Param) bool { return CamelCase(f.Name) != f.Name || renames(f) }) ||
		p.Of != nil && renames(*p.Of) || slices.ContainsFunc(p.Or, renames)
}

// rename returns v with the declared keys of its maps renamed: what is called
// from(name) becomes to(name).
func (p *Param) rename(v Value, from, to func(name string) string) Value {
	if !renames(*p) {
		return v
	}
	switch v := v.(type) {
	case *List:
		if p.Of == nil {
			break
		}
		out := &List{Items: make([]Value, len(v.Items))}
		for i, e := range v.Items {
			out.Items[i] = p.Of.rename(e, from, to)
		}
		return out
	case *Map:
		out := NewMap()
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			if i := slices.IndexFunc(p.Fields, func(f Param) bool { return from(f.Name) == k }); i >= 0 {
				k, e = to(p.Fields[i].Name), p.Fields[i].rename(e, from, to)
			} else if p.Of != nil {
				e = p.Of.rename(e, from, to)
			}
			out.Set(k, e)
		}
		return out
	}
	for i := range p.Or {
		if renames(p.Or[i]) {
			return p.Or[i].rename(v, from, to)
		}
	}
	return v
}
