package process

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/regex"
)

func FuzzCRI(f *testing.F) {
	for _, s := range []string{"", "t stdout F x", "t  stderr  P  x", "t stdout", "t stdout F", "t stdoutx F x", " stdout F x", "t stdout P:a:b x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, ok := parseCRI(line)
		if !ok {
			return
		}
		if c.stream != "stdout" && c.stream != "stderr" || c.time == "" || !strings.HasPrefix(line, c.time) || !strings.HasSuffix(line, c.content) {
			t.Errorf("%q is read as %+v", line, c)
		}
	})
}

// FuzzLuhn compares the result with a formula that starts at each remaining
// digit.
func FuzzLuhn(f *testing.F) {
	for _, s := range []string{"", "79927398713", "4032 0325 1354 8443", "x18y", "1-8", "000", "99999999999999999999"} {
		f.Add(s, " -")
		f.Add(s, "")
	}
	f.Fuzz(func(t *testing.T, line, delimiters string) {
		s := &luhnStage{LuhnArguments: LuhnArguments{Replacement: "#", MinLength: 2, Delimiters: delimiters}}
		out, _ := s.redacted(line, regex.Guard{})
		if strings.ContainsAny(delimiters, "#0123456789") {
			return
		}
		if again, _ := s.redacted(out, regex.Guard{}); again != out {
			t.Errorf("%q becomes %q and then %q", line, out, again)
		}
		if len(out) > len(line) || strings.Count(out, "#") == strings.Count(line, "#") && out != line {
			t.Errorf("%q becomes %q", line, out)
		}
	})
}
