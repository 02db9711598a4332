package stdlib

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weir-run/weir/scripting"
)

func mathModule() *scripting.Module {
	x := scripting.Param{Name: "x", Kind: scripting.KindNumber, Doc: "The number."}
	number := scripting.Result{Kind: scripting.KindNumber, Doc: "The number."}
	of := func(name, doc string, fn func(float64) float64, es ...scripting.FunctionExample) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{x}, Result: number, Examples: es,
			Fn: func(a []scripting.Value) (scripting.Value, error) { return fn(a[0].(float64)), nil }}
	}
	is := func(name, doc string, fn func(float64) bool, es ...scripting.FunctionExample) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{x}, Examples: es,
			Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether the condition holds."},
			Fn:     func(a []scripting.Value) (scripting.Value, error) { return fn(a[0].(float64)), nil }}
	}
	some := scripting.Param{Name: "numbers", Kind: scripting.KindList, Doc: "The numbers."}
	overall := func(name, doc string, fn func([]float64) float64, es ...scripting.FunctionExample) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{some}, Examples: es,
			Result: scripting.Result{Kind: scripting.KindNumber, Doc: "The number.", Fails: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				xs, err := numbersOf(a[0].(*scripting.List))
				if err != nil {
					return nil, err
				}
				return fn(xs), nil
			}}
	}
	four := list(int64(1), int64(2), int64(3), 10.0)
	none := scripting.FunctionExample{Args: []scripting.Value{list()}, Err: "no numbers"}
	return &scripting.Module{
		Name: "math",
		Doc: "Numeric functions that Lua's own math lacks: rounding, special values and statistics. " +
			"To use both modules in a script, name this one xmath: local xmath = require \"math\".",
		Funcs: []scripting.Function{
			{
				Name: "round", Doc: "Rounds to a number of digits; halves are rounded away from zero.",
				Params: []scripting.Param{x, {Name: "digits", Kind: scripting.KindInt, Doc: "The number of digits after the decimal point, -15 to 15; 0 by default.", Optional: true}},
				Result: scripting.Result{Kind: scripting.KindNumber, Doc: "The number.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					d, _ := a[1].(int64)
					if d < -15 || d > 15 {
						return nil, fmt.Errorf("cannot round to %d digits: it must be -15 to 15", d)
					}
					return roundTo(a[0].(float64), int(d)), nil
				},
				Examples: []scripting.FunctionExample{ex(3.0, 2.5), ex(-3.0, -2.5), ex(1.23, 1.2345, int64(2)), ex(1200.0, 1234.0, int64(-2)),
					{Args: []scripting.Value{1.0, int64(99)}, Err: "-15 to 15"}},
			},
			of("trunc", "Removes the fraction.", math.Trunc, ex(2.0, 2.7), ex(-2.0, -2.7)),
			of("sign", "Returns -1, 0 or 1, the sign of the number.", func(x float64) float64 {
				switch {
				case x > 0:
					return 1
				case x < 0:
					return -1
				}
				return x // 0 or NaN
			}, ex(-1.0, -7.0), ex(0.0, 0.0)),
			of("log2", "Returns the logarithm to base 2.", math.Log2, ex(10.0, 1024.0)),
			of("log10", "Returns the logarithm to base 10.", math.Log10, ex(3.0, 1000.0)),
			of("cbrt", "Returns the cube root.", math.Cbrt, ex(3.0, 27.0)),
			{
				Name: "clamp", Doc: "Limits a number to a range: returns the number, or the bound that it exceeds. NaN is returned unchanged.",
				Params: []scripting.Param{x, {Name: "min", Kind: scripting.KindNumber, Doc: "The lower bound."}, {Name: "max", Kind: scripting.KindNumber, Doc: "The upper bound."}},
				Result: scripting.Result{Kind: scripting.KindNumber, Doc: "The number.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					x, lo, hi := a[0].(float64), a[1].(float64), a[2].(float64)
					if !(lo <= hi) {
						return nil, fmt.Errorf("cannot clamp between %g and %g: the first must not be more than the second", lo, hi)
					}
					return math.Max(lo, math.Min(hi, x)), nil
				},
				Examples: []scripting.FunctionExample{ex(1.0, 1.7, 0.0, 1.0), ex(0.5, 0.5, 0.0, 1.0), {Args: []scripting.Value{1.0, 2.0, 1.0}, Err: "must not be more"}},
			},
			is("is_nan", "Reports whether the number is NaN.", math.IsNaN, ex(false, 1.0)),
			is("is_inf", "Reports whether the number is infinite.", func(x float64) bool { return math.IsInf(x, 0) }, ex(false, 1.0)),
			is("is_finite", "Reports whether the number is neither NaN nor infinite.", func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }, ex(true, 1.0)),
			{
				Name: "sum", Doc: "Returns the sum, compensating for rounding errors.", Params: []scripting.Param{some},
				Result: scripting.Result{Kind: scripting.KindNumber, Doc: "The sum; 0 for an empty list.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					if len(a[0].(*scripting.List).Items) == 0 {
						return 0.0, nil
					}
					xs, err := numbersOf(a[0].(*scripting.List))
					if err != nil {
						return nil, err
					}
					return sum(xs), nil
				},
				Examples: []scripting.FunctionExample{ex(16.0, four), ex(0.0, list()), ex(0.6, list(0.1, 0.2, 0.3)),
					{Args: []scripting.Value{list("1")}, Err: "is no number"}},
			},
			overall("mean", "Returns the arithmetic mean.", func(xs []float64) float64 { return sum(xs) / float64(len(xs)) }, ex(4.0, four), none),
			overall("median", "Returns the median.", func(xs []float64) float64 { return quantile(xs, 0.5) }, ex(2.5, four)),
			overall("stddev", "Returns the population standard deviation, as in PromQL.", stddev, ex(2.0, list(int64(2), int64(4), int64(4), int64(4), int64(5), int64(5), int64(7), int64(9)))),
			overall("max", "Returns the largest number.", slices.Max, ex(10.0, four)),
			overall("min", "Returns the smallest number.", slices.Min, ex(1.0, four), none),
			{
				Name: "quantile", Doc: "Returns a quantile of numbers, with linear interpolation as in PromQL.",
				Params: []scripting.Param{{Name: "q", Kind: scripting.KindNumber, Doc: "The quantile, 0 to 1."}, some},
				Result: scripting.Result{Kind: scripting.KindNumber, Doc: "The number.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					q := a[0].(float64)
					if !(q >= 0 && q <= 1) {
						return nil, fmt.Errorf("cannot use quantile %g: it must be 0 to 1", q)
					}
					xs, err := numbersOf(a[1].(*scripting.List))
					if err != nil {
						return nil, err
					}
					return quantile(xs, q), nil
				},
				Examples: []scripting.FunctionExample{ex(10.0, 1.0, four), ex(1.75, 0.25, four), {Args: []scripting.Value{2.0, four}, Err: "0 to 1"}},
			},
		},
	}
}

// numbersOf returns the numbers of a non-empty list in a new slice.
func numbersOf(l *scripting.List) ([]float64, error) {
	if len(l.Items) == 0 {
		return nil, errors.New("cannot use an empty list: there are no numbers in it")
	}
	xs := make([]float64, len(l.Items))
	for i, v := range l.Items {
		switch v := v.(type) {
		case int64:
			xs[i] = float64(v)
		case float64:
			xs[i] = v
		default:
			return nil, fmt.Errorf("cannot use item %d of the list: it is no number", i+1)
		}
	}
	return xs, nil
}

func roundTo(x float64, digits int) float64 {
	p := math.Pow10(max(digits, -digits))
	y := math.Round(x * p)
	if digits < 0 {
		return math.Round(x/p) * p
	}
	if math.IsInf(y, 0) || math.IsNaN(y) {
		return x // it has no such digits
	}
	return y / p
}

// sum returns the sum by Neumaier's algorithm.
func sum(xs []float64) float64 {
	var s, c float64
	for _, x := range xs {
		t := s + x
		switch {
		case math.IsInf(t, 0):
			c = 0
		case math.Abs(s) >= math.Abs(x):
			c += (s - t) + x
		default:
			c += (x - t) + s
		}
		s = t
	}
	return s + c
}

func stddev(xs []float64) float64 {
	mean := sum(xs) / float64(len(xs))
	for i := range xs {
		xs[i] = (xs[i] - mean) * (xs[i] - mean)
	}
	return math.Sqrt(sum(xs) / float64(len(xs)))
}

func quantile(xs []float64, q float64) float64 {
	slices.Sort(xs)
	rank := q * float64(len(xs)-1)
	lo := int(rank)
	hi := min(lo+1, len(xs)-1)
	w := rank - float64(lo)
	if w == 0 {
		return xs[lo]
	}
	return xs[lo]*(1-w) + xs[hi]*w
}
