package api

import "github.com/weir-run/weir/scripting"

// tests writes the module weir/test and the globals of test files.
func (w *tsTypes) tests(tests *scripting.TestAPI) {
	w.inModule("weir/test", func() {
		w.objects(tests.Weir.Types)
		w.exports(tests.Weir)
	})
}
