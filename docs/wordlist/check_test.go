package wordlist

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got := strings.Join(check("x.md", 1, code.ReplaceAllStringFunc(text, blank)), "\n")
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("check(%q) = %q, want %q", text, got, want)
		}
	}
	f("The node is built anew.", `x.md:1: "anew"`)
	f("Each lane has a queue.", `x.md:1: " lane"`)
	f("One.\nAnother\nand the others.", `x.md:3: "others."`)
	f("It waits. What it keeps is sent later.", `x.md:1: ". What it keeps is sent later."`)
	f("Who wants a cache\nuses lru.", `x.md:1: "Who wants a cache\nuses lru."`)
	f("Waits for who is slower.", `x.md:1: "for who"`)
	f("# Heading\n\n```\nanew\n```\nIt says so.", `x.md:6: "says so"`)

	f("A cycle that is none.", `x.md:1: "t is none"`)
	f("It is nil if there is none.", "")

	// Questions, relative clauses, headings and code are fine.
	f("What does it keep?", "")
	f("A user who waits sees what is kept.", "")
	f("What follows:\n```\nx = 1\n```\nAnd a sentence.", "")
	f("# What weir defends against\n\n`anew` is a word; the other nodes wait.", "")
}
