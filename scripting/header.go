package scripting

import "strings"

// Header is the comment at the top of a script: a description with examples.
type Header struct {
	Summary  string
	Examples []Example
}

// Example is an `Example Args`, `Example Input`, `Example Output` of a header.
type Example struct {
	Args   string // attributes of the block
	Input  string // a batch in text form
	Output string
	Line   int // of its first line
	// Lines of the file on which the text of each heading begins, or 0 if there is
	// no such heading.
	ArgsLine, InputLine, OutputLine int
}

func (e *Example) section(name string) (text *string, line *int) {
	switch name {
	case "Input":
		return &e.Input, &e.InputLine
	case "Output":
		return &e.Output, &e.OutputLine
	}
	return &e.Args, &e.ArgsLine
}

// ParseHeader parses the lines of a file's first comment, without comment
// markers. A line that repeats the file's path is not part of the summary. An
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
			if n == 0 || section == "Args" || (section == "Input" && h.Examples[n-1].InputLine > 0) {
				h.Examples = append(h.Examples, Example{Line: i + 1})
			}
			_, first := h.Examples[len(h.Examples)-1].section(section)
			*first = i + 2
			continue
		}
		if section == "" {
			if len(summary) > 0 || t != "" && !strings.HasPrefix(t, "scripts/") {
				summary = append(summary, strings.TrimRight(line, " \t\r"))
			}
			continue
		}
		e := &h.Examples[len(h.Examples)-1]
		into, _ := e.section(section)
		*into += strings.TrimPrefix(strings.TrimRight(line, " \t\r"), "  ") + "\n"
	}
	for i := range h.Examples {
		for _, text := range []*string{&h.Examples[i].Args, &h.Examples[i].Input, &h.Examples[i].Output} {
			if *text = strings.TrimRight(*text, "\n"); *text != "" {
				*text += "\n"
			}
		}
	}
	h.Summary = strings.TrimSpace(strings.Join(summary, "\n"))
	return h
}
