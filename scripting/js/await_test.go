package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/stdlib"
)

// TestTopLevelAwait holds that the error of an await outside of a function tells
// where to write it instead, which depends on the kind of file. TestPlainFiles,
// TestAsyncHooks and the tests of scripttest show that the advice works.
func TestTopLevelAwait(t *testing.T) {
	f := func(err error, file string, line, col int, hint string) {
		t.Helper()
		if err == nil {
			t.Fatal("got no error")
		}
		e := scriptErr(t, err)
		if e.File != file || e.Line != line || e.Col != col || e.Err.Error() != "cannot await outside of a function: a file runs to its end before anything can wait" || e.Hint != hint {
			t.Errorf("got %s:%d:%d: %v\nhint: %s\nwant %s:%d:%d, hint: %s", e.File, e.Line, e.Col, e.Err, e.Hint, file, line, col, hint)
		}
	}
	const hook = "await in a hook, such as async setup(ctx) { … }"
	f(load(t, "\nawait 1\n"+metrics("")).Err, "embedded/test/script.ts", 2, 1, hook)
	f(load(t, "import x from \"./x\"\n"+metrics("x"), "test/x.ts", "const o = { a: 1 }\n\nawait o\nexport default o\n").Err, "embedded/test/x.ts", 3, 1, hook)
	f(load(t, "for await (const x of []) {}\n"+metrics("")).Err, "embedded/test/script.ts", 1, 5, hook)

	_, err := runPlain(t.Context(), "#!/usr/bin/env weir eval\nawait 1", scripting.PlainOptions{})
	f(err, "x.ts", 2, 1, "put it into (async () => { … })()")

	file := scripting.File{Name: "x.test.ts", Text: "await 1\n"}
	_, err = js.New().NewTest(file, scripting.Env{Modules: stdlib.Modules()}, &scripting.TestAPI{})
	f(err, "x.test.ts", 1, 1, `await in a test: it("…", async () => { … })`)
}

// TestAwaitInAFunctionThatIsNotAsync is what esbuild and goja say by themselves.
func TestAwaitInAFunctionThatIsNotAsync(t *testing.T) {
	err := load(t, metrics("await ctx.sleep(1)")).Err
	if err == nil {
		t.Fatal("got no error")
	}
	if e := scriptErr(t, err); e.Line != 3 || e.Col != 1 || !strings.Contains(e.Err.Error(), `"await" can only be used inside an "async" function`) {
		t.Errorf("got %d:%d: %v, hint %q", e.Line, e.Col, e.Err, e.Hint)
	}
}
