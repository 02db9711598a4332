package scripting

import "slices"

// Camel returns the function with JavaScript names: its name and the declared
// keys of its options and results are in camelCase. Undeclared names, such as
// those of labels or JSON, stay unchanged.
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
		self := len(in) - len(f.Params) // the object of a method
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

// camelParams returns parameters whose declared keys are in camelCase. The
// names of the parameters themselves are only positions, except for fields.
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

// renames reports whether CamelCase changes keys in a value of p.
func renames(p Param) bool {
	return slices.ContainsFunc(p.Fields, func(f Param) bool { return CamelCase(f.Name) != f.Name || renames(f) }) ||
		p.Of != nil && renames(*p.Of) || slices.ContainsFunc(p.Or, renames)
}

// rename returns v with the declared keys of its maps renamed from from(name)
// to to(name).
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
