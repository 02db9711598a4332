package componenttest

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// Decode decodes the body of a block of r as weir check would. It returns the
// arguments, which are an A, and what is wrong with them, a line each: the body
// begins in line 2 of a file c.alloy.
func Decode[A any](r component.Registration, body string) (args A, problems string) {
	args = r.NewArgs().(A)
	c, ds := config.Parse(map[string]string{"c.alloy": r.Name + " \"test\" {\n" + body + "\n}\n"})
	if len(ds) == 0 {
		ds = c.Blocks[0].Decode(c.NewScope("v0.0.0"), args)
	}
	var lines []string
	for _, d := range ds {
		lines = append(lines, d.Error())
	}
	return args, strings.Join(lines, "\n")
}

// Arguments is Decode of a body with nothing wrong, not even a warning.
func Arguments[A any](t testing.TB, r component.Registration, body string) A {
	t.Helper()
	a, problems := Decode[A](r, body)
	if problems != "" {
		t.Fatal(problems)
	}
	return a
}
