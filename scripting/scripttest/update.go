package scripttest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// rewrite is an example and the output that it should have.
type rewrite struct {
	example scripting.Example
	output  string
}

// textLike is the output in text form, with the kinds of metadata that an example
// had before: who left them out does not want to see them.
func (o *output) textLike(before string) string {
	var b strings.Builder
	for line := range strings.Lines(o.text()) {
		kind, isMeta := "", false
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			kind, _, isMeta = strings.Cut(rest, " ")
		}
		if !isMeta || strings.Contains(before, "# "+kind+" ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// rewrite writes a script with new outputs of its examples, unless the file has
// changed in the meantime.
func (s *suite) rewrite(f scripting.File, all []rewrite) error {
	now, err := s.read(f.Path)
	if err == nil && now.Text != f.Text {
		err = errors.New("it was changed meanwhile; run the tests again")
	}
	if err != nil {
		return fmt.Errorf("cannot rewrite the examples of %s: %w", f.Name, err)
	}
	lines := strings.SplitAfter(f.Text, "\n")
	for i := len(all) - 1; i >= 0; i-- { // from below: lines above keep their numbers
		if lines, err = all[i].apply(lines); err != nil {
			return fmt.Errorf("cannot rewrite the examples of %s: %w", f.Name, err)
		}
	}
	if err := s.update(f.Path, strings.Join(lines, "")); err != nil {
		return fmt.Errorf("cannot rewrite the examples of %s: %w", f.Name, err)
	}
	return nil
}

// apply returns the lines of a file with the output of one example changed. A
// block comment must end where it ended before.
func (r rewrite) apply(lines []string) ([]string, error) {
	first := r.example.OutputLine - 1
	heading := lines[first-1] // "-- Example Output:\n"
	mark, end, _ := strings.Cut(heading, "Example Output:")
	var added []string
	for line := range strings.Lines(r.output) {
		added = append(added, mark+"  "+strings.TrimSuffix(line, "\n")+end)
	}
	last := first + strings.Count(r.example.Output, "\n")
	if m := strings.TrimSpace(mark); !strings.HasPrefix(m, "//") && !strings.HasPrefix(m, "--") {
		switch {
		case strings.Contains(r.output, "*/"):
			return nil, fmt.Errorf("the output of the example in line %d contains */, which ends the comment; begin the lines of the header with //", r.example.Line)
		case strings.Contains(strings.Join(lines[first:last], "")+heading, "*/"):
			return nil, fmt.Errorf("the comment ends in a line of the example in line %d; put */ on a line of its own", r.example.Line)
		}
	}
	return append(append(append([]string(nil), lines[:first]...), added...), lines[last:]...), nil
}
