package scripttest

import "github.com/weir-run/weir/scripting"

var (
	nameParam  = scripting.Param{Name: "name", Kind: scripting.KindString}
	fnParam    = scripting.Param{Name: "fn", Kind: scripting.KindFunction}
	fnOptional = scripting.Param{Name: "fn", Kind: scripting.KindFunction, Optional: true}
)

// busted adds the words that tests in Lua are written in.
func (s *session) busted(api *scripting.TestAPI) {
	api.Globals = []scripting.Function{
		s.describeFunc("describe", "Groups the tests that fn declares. Groups may be nested.", fnParam, runs),
		s.itFunc("it", "Declares a test. Without fn it is pending.", fnOptional, runs),
		{Name: "pending", Doc: "Declares a test that is not run. In a test, ends the test as pending.",
			Params: []scripting.Param{nameParam, fnOptional},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				if s.running {
					return nil, &pendingError{a[0].(string)}
				}
				return nil, s.it(a[0].(string), nil, skipped)
			}},
		s.beforeEach(), s.afterEach(), s.forallFunc(), s.benchFunc(),
	}
	api.Assert, api.Spied = s.assertion, s.spied
}

// describeFunc declares groups.
func (s *session) describeFunc(name, doc string, fn scripting.Param, m mode) scripting.Function {
	return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{nameParam, fn},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			f, _ := a[1].(scripting.Callback)
			return nil, s.describe(a[0].(string), f, m)
		}}
}

// itFunc declares tests.
func (s *session) itFunc(name, doc string, fn scripting.Param, m mode) scripting.Function {
	return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{nameParam, fn},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			f, _ := a[1].(scripting.Callback)
			return nil, s.it(a[0].(string), f, m)
		}}
}

// aroundFunc declares what runs around tests.
func (s *session) aroundFunc(name, doc string, into func(g *group) *[]scripting.Callback) scripting.Function {
	return scripting.Function{Name: name, Doc: doc, Params: []scripting.Param{fnParam},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			return nil, s.addCallback(into, s.called(name), a[0].(scripting.Callback))
		}}
}

func (s *session) beforeEach() scripting.Function {
	return s.aroundFunc("before_each", "Runs fn before each test of the group.", func(g *group) *[]scripting.Callback { return &g.before })
}

func (s *session) afterEach() scripting.Function {
	return s.aroundFunc("after_each", "Runs fn after each test of the group, also after one that failed.", func(g *group) *[]scripting.Callback { return &g.after })
}

func (s *session) benchFunc() scripting.Function {
	return scripting.Function{Name: "bench", Doc: "Declares a benchmark for --bench. It repeatedly sends a batch to a component, given as text or as a function that returns text; or it repeatedly calls a function, what.",
		Params: []scripting.Param{nameParam, {Name: "what", Kind: scripting.KindAny}, {Name: "text", Kind: scripting.KindAny, Optional: true}},
		Fn:     func(a []scripting.Value) (scripting.Value, error) { return nil, s.declareBench(a) }}
}

// refusedOfBusted are functions of busted's that are not here, and what to do
// instead.
var refusedOfBusted = map[string]string{
	"setup":         "use before_each, or open the component outside of the tests",
	"teardown":      "use after_each; components end by themselves",
	"lazy_setup":    "use before_each, or open the component outside of the tests",
	"lazy_teardown": "use after_each; components end by themselves",
	"strict_setup":  "use before_each, or open the component outside of the tests",
	"finally":       "use after_each",
	"insulate":      "use describe: a test file has a VM of its own",
	"expose":        "use describe",
	"randomize":     "tests run in their order",
	"context":       "use describe",
	"spec":          "use it",
	"test":          "use it",
}
