package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/manual"
)

// Language describes the operators and functions of the config language. It is
// generated from their tables. A test evaluates each example in it.
func Language() string {
	var b strings.Builder
	b.WriteString(languageHead)
	for _, o := range operators {
		o.write(&b)
	}
	b.WriteString(languagePrecedence)
	for _, level := range precedence {
		fmt.Fprintf(&b, "  %s\n", strings.Join(level, "   "))
	}
	b.WriteString("\n")
	for _, x := range precedenceExamples {
		x.write(&b, 2)
	}
	b.WriteString(languageFunctions)
	for _, f := range functions {
		f.write(&b)
	}
	b.WriteString("\nOld names of functions still work; write the new ones:\n\n")
	for _, old := range slices.Sorted(maps.Keys(oldNames)) {
		fmt.Fprintf(&b, "  %-14s %s\n", old, oldNames[old])
	}
	b.WriteString(languageTail)
	return b.String()
}

const languageHead = `OPERATORS

The examples below are evaluated on a host host-1 with Linux, with REGION = "eu" in
the environment, in /etc/weir/config.alloy, with these blocks:

  local.file "sites" {
    filename = "/etc/weir/sites.json"    // [{"name":"north"},{"name":"south"}]
  }

  local.file "token" {
    filename  = "/etc/weir/token"        // s3cr3t
    is_secret = true
  }

`

const languagePrecedence = `
PRECEDENCE

Operators that bind more tightly come first. Operators on the same line have the same
precedence and are evaluated from left to right, powers from right to left. Use
brackets ( ) for another order.

`

// precedenceExamples show the precedence of operators.
var precedenceExamples = newTopic("", "", "",
	`1 + 2 * 3`, `7`,
	`(1 + 2) * 3`, `9`,
	`-2 ^ 2`, `4`,
	`2 ^ 3 ^ 2`, `512`,
	`true || false && false`, `true`,
).examples

const languageFunctions = `
FUNCTIONS

`

const languageTail = `
The name module_path stands for the directory of the file that uses it.
`

// write writes a topic: its syntax, its description and its examples.
func (t topic) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s\n", t.form)
	manual.WriteParagraph(b, "      ", t.doc)
	for _, x := range t.examples {
		x.write(b, 10)
	}
}

// write writes an example. A result that does not fit is on the next line.
func (x example) write(b *strings.Builder, indent int) {
	if len(x.source)+len(x.result)+indent > manual.Width {
		fmt.Fprintf(b, "%*s%s\n%*s→ %s\n", indent, "", x.source, indent+4, "", x.result)
		return
	}
	fmt.Fprintf(b, "%*s%-*s → %s\n", indent, "", 46-indent, x.source, x.result)
}
