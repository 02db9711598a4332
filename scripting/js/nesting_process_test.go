package js_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
)

// bombs are texts of the size that a file may have, which make parsers call
// themselves. All are refused, or compiled, and the process lives.
var bombs = map[string]func(n int) string{
	"[":       func(n int) string { return strings.Repeat("[", n) },
	"(":       func(n int) string { return strings.Repeat("(", n) },
	"{":       func(n int) string { return strings.Repeat("{", n) },
	"([{":     func(n int) string { return strings.Repeat("([{a:", n/5) },
	"!":       func(n int) string { return strings.Repeat("!", n) + "1" },
	"- -":     func(n int) string { return strings.Repeat("- ", n/2) + "1" },
	"typeof":  func(n int) string { return strings.Repeat("typeof ", n/7) + "1" },
	"new":     func(n int) string { return strings.Repeat("new ", n/4) + "A" },
	"arrow":   func(n int) string { return strings.Repeat("a=>", n/3) + "1" },
	"ternary": func(n int) string { return strings.Repeat("a?b:", n/4) + "1" },
	"assign":  func(n int) string { return strings.Repeat("a=", n/2) + "1" },
	"power":   func(n int) string { return strings.Repeat("1**", n/3) + "1" },
	"plus":    func(n int) string { return strings.Repeat("1+", n/2) + "1" },
	"and":     func(n int) string { return strings.Repeat("a&&", n/3) + "1" },
	"dot":     func(n int) string { return "a" + strings.Repeat(".a", n/2) },
	"call":    func(n int) string { return "a" + strings.Repeat("()", n/2) },
	"index":   func(n int) string { return "a" + strings.Repeat("[0]", n/3) },
	"if":      func(n int) string { return strings.Repeat("if(a)", n/5) + ";" },
	"else if": func(n int) string { return strings.Repeat("if(a);else ", n/11) + ";" },
	"while":   func(n int) string { return strings.Repeat("while(a)", n/8) + ";" },
	"label":   func(n int) string { return strings.Repeat("a:", n/2) + ";" },
	"comma":   func(n int) string { return strings.Repeat("1,", n/2) + "1" },
	"tag":     func(n int) string { return "a" + strings.Repeat("``", n/2) },
	"${":      func(n int) string { return strings.Repeat("`${", n/3) },
	"lines":   func(n int) string { return strings.Repeat("!\n", n/2) + "1" },
	"newline": func(n int) string { return strings.Repeat("void\n", n/5) + "1" },
	"type":    func(n int) string { return "type A = " + strings.Repeat("B<", n/2) },
	"keyof":   func(n int) string { return "type A = " + strings.Repeat("keyof ", n/6) + "B" },
	"union":   func(n int) string { return "type A = " + strings.Repeat("A|", n/2) + "B" },
	"class":   func(n int) string { return strings.Repeat("class extends ", n/14) + "A{}" },
	"async":   func(n int) string { return strings.Repeat("async()=>", n/9) + "1" },
	"yield":   func(n int) string { return "function*f(){" + strings.Repeat("yield ", n/6) + "}" },
	"do":      func(n int) string { return strings.Repeat("do\n", n/3) },
}

func TestNestingDoesNotEndTheProcess(t *testing.T) {
	const child = "WEIR_TEST_BOMBS"
	if os.Getenv(child) != "" {
		for _, name := range slices.Sorted(maps.Keys(bombs)) {
			fmt.Println(name)
			_, err := js.New().Compile(scripting.File{Name: "bomb.ts", Text: bombs[name](scripting.MaxFileSize)}, scripting.Env{})
			if _, ok := errors.AsType[*scripting.Error](err); !ok {
				t.Fatalf("got %.300v, want a *scripting.Error", err)
			}
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNestingDoesNotEndTheProcess$")
	cmd.Env = append(os.Environ(), child+"=1", "GOMEMLIMIT=1GiB")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v, the last one was to blame:\n%.3000s", err, out)
	}
}

func TestLongFilesAreNotDeep(t *testing.T) {
	for name, text := range map[string]string{
		"comment":    strings.Repeat("// A line of words about what comes.\n", 3000),
		"statements": strings.Repeat("{ const f = (a) => { return a + 1 } }\n", 1000),
		"calls":      strings.Repeat("console.log(1, [2], { a: 3 });\n", 3000),
		"data":       "const x = [" + strings.Repeat("1, ", 9000) + "]",
	} {
		_, err := js.New().Compile(scripting.File{Name: "long.ts", Text: text}, scripting.Env{})
		if err == nil || !strings.Contains(err.Error(), "does not export its definition") {
			t.Errorf("%s: got %.300v", name, err)
		}
	}
}
