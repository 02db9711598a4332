package scripting

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
)

// Ignore is a comment weir:ignore ID REASON. It hides the findings with the
// identifier in one line.
type Ignore struct {
	ID, Reason string // "" if they are missing
	At         int    // the line of the comment
	// Line is the line that it applies to: that of the comment, or the next line of
	// code if the comment is alone in its line.
	Line int
}

var ignoreComment = regexp.MustCompile(`(?m)(?:--|//)[ \t]*weir:ignore\b[ \t]*(\S*)[ \t]*(.*)$`)

// Ignores returns the comments weir:ignore of a text. mark begins a comment;
// tokens returns the tokens of the text, in which there are no comments.
func Ignores(text, mark string, tokens func(string) []Token) (out []Ignore) {
	if !strings.Contains(text, "weir:ignore") {
		return nil
	}
	lines := strings.Split(text, "\n")
	isComment := func(n int) bool { // n starts at 1
		return n <= len(lines) && strings.HasPrefix(strings.TrimSpace(lines[n-1]), mark)
	}
	from, line := 0, 1 // of the gap between two tokens
	for _, t := range append(tokens(text), Token{At: len(text)}) {
		gap := text[from:max(from, t.At)]
		for _, m := range ignoreComment.FindAllStringSubmatch(gap, -1) {
			// The same comment cannot be twice in a line.
			before, rest, _ := strings.Cut(gap, m[0])
			line += strings.Count(before, "\n")
			gap = rest
			c := Ignore{ID: m[1], Reason: strings.TrimSpace(m[2]), At: line, Line: line}
			if isComment(line) {
				for c.Line++; isComment(c.Line); c.Line++ {
				}
			}
			out = append(out, c)
		}
		line += strings.Count(gap, "\n") + strings.Count(t.Text, "\n")
		from = t.End()
	}
	return out
}

// Ignoring returns the findings that no comment hides, and findings in the
// comments, in the order of their positions.
func Ignoring(f File, ignores []Ignore, found []Finding) []Finding {
	for _, c := range ignores {
		hidden := func(found Finding) bool {
			return found.Err.Line == c.Line && found.Err.ID == c.ID
		}
		var msg, hint string
		switch {
		case c.ID == "":
			msg, hint = "weir:ignore has no identifier", "write weir:ignore ID REASON with the identifier of the finding, which is in brackets"
		case !slices.Contains(LintIDs, c.ID) && c.ID != LintMutate:
			msg, hint = fmt.Sprintf("there is no finding %q to ignore", c.ID), config.DidYouMean(c.ID, append([]string{LintMutate}, LintIDs...))
		case c.Reason == "":
			msg, hint = fmt.Sprintf("weir:ignore %s has no reason: it has no effect", c.ID), "write the reason after the identifier"
		case c.ID == LintMutate || c.ID == LintMissingTest: // scripttest reads them
			continue
		case !slices.ContainsFunc(found, hidden):
			msg = fmt.Sprintf("weir:ignore %s hides nothing: line %d has no such finding", c.ID, c.Line)
			hint = "remove the comment"
		default:
			found = slices.DeleteFunc(found, hidden)
			continue
		}
		e := f.Error(c.At, HookLoad, fmt.Errorf("%s", msg))
		e.ID, e.Hint = LintBadIgnore, hint
		found = append(found, Finding{Err: e, Warning: true})
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(a.Err.Line-b.Err.Line, a.Err.Col-b.Err.Col)
	})
	return found
}
