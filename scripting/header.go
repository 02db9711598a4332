package scripting

import "strings"

// Header is the comment at the top of a script: what it does, with examples.
type Header struct {
	Summary  string
	Examples []Example
}

// Example is one `Example Args`, `Example Input`, `Example Output` of a header.
type Example struct {
	Args   string // attributes of the block
	Input  string // a batch in text form
	Output string
	Line   int // of its first line
}

// ParseHeader reads the lines of a file's first comment, markers removed. A
// line that repeats the file's own path is left out of the summary. Another
// "Example Input:" after an output begins the next example.
func ParseHeader(comment []string) Header {
	var h Header
	var summary []string
	section := ""
	for i, line := range comment {
		t := strings.TrimSpace(line)
		switch t {
		case "Example Args:", "Example Input:", "Example Output:":
			section = strings.TrimSuffix(strings.TrimPrefix(t, "Example "), ":")
			n := len(h.Examples)
			if n == 0 || section == "Args" || (section == "Input" && h.Examples[n-1].Input != "") {
				h.Examples = append(h.Examples, Example{Line: i + 1})
			}
			continue
		}
		if section == "" {
			if !(i == 0 && strings.HasPrefix(t, "scripts/")) {
				summary = append(summary, t)
			}
			continue
		}
		e := &h.Examples[len(h.Examples)-1]
		line = strings.TrimPrefix(strings.TrimRight(line, " \t\r"), "  ")
		if line == "" {
			continue
		}
		switch section {
		case "Args":
			e.Args += line + "\n"
		case "Input":
			e.Input += line + "\n"
		case "Output":
			e.Output += line + "\n"
		}
	}
	h.Summary = strings.TrimSpace(strings.Join(summary, "\n"))
	return h
}
