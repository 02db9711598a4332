package scripttest

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// page shows files as folded sections, and needs nothing but itself.
var page = template.Must(template.New("coverage").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{{.Total}} of lines covered</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 72em; color: #222; background: #fff }
summary { cursor: pointer; padding: .3em 0 }
summary b { display: inline-block; min-width: 4.5em; text-align: right; margin-right: 1em }
pre { margin: 0 0 1em; font: 13px/1.5 ui-monospace, monospace; overflow-x: auto }
pre span { display: block; white-space: pre; padding-left: .5em; border-left: 4px solid transparent }
pre i { display: inline-block; width: 8em; padding-right: 1em; text-align: right; color: #888; font-style: normal; user-select: none }
.ran { background: #eaf7ea; border-color: #4caf50 }
.not { background: #fdeaea; border-color: #e53935 }
.part { background: #fff6dd; border-color: #f0a500 }
em { color: #a56a00; font-style: normal }
</style>
<h1>{{.Total}} of lines, {{.Branches}} of branches</h1>
{{range .Files}}<details{{if .Open}} open{{end}}><summary><b>{{.Percent}}</b>{{.Name}}</summary>
<pre>{{range .Lines}}<span class="{{.Class}}"><i>{{.Hits}} {{.Number}}</i>{{.Text}}{{if .Note}}  <em>{{.Note}}</em>{{end}}</span>{{end}}</pre>
</details>
{{end}}</html>
`))

type pageFile struct {
	Name, Percent string
	Open          bool
	Lines         []pageLine
}

type pageLine struct {
	Number            int
	Class, Hits, Text string
	Note              string // what is missing of a branch
}

// WriteHTML writes one page with the text of all files.
func WriteHTML(w io.Writer, c *Coverage) error {
	lines, branches := c.Total()
	data := struct {
		Total, Branches string
		Files           []pageFile
	}{Total: fmt.Sprintf("%.1f%%", lines.Percent()), Branches: fmt.Sprintf("%.1f%%", branches.Percent())}
	for i := range c.Files {
		f := &c.Files[i]
		p := pageFile{Name: f.Name, Percent: fmt.Sprintf("%.1f%%", f.LineShare().Percent()), Open: f.LineShare().Ran < f.LineShare().All}
		for n, text := range splitLines(f.Text) {
			p.Lines = append(p.Lines, pageLine{Number: n + 1, Text: strings.TrimSuffix(text, "\r")})
		}
		f.mark(p.Lines)
		data.Files = append(data.Files, p)
	}
	return page.Execute(w, data)
}

// mark colours lines and says which arms of ifs were not taken.
func (f *FileCoverage) mark(lines []pageLine) {
	for _, l := range f.Lines {
		p := &lines[l.Line-1]
		p.Class, p.Hits = "ran", fmt.Sprintf("%d×", l.Hits)
		if l.Hits == 0 {
			p.Class = "not"
		}
	}
	for _, b := range f.Branches {
		p := &lines[b.Line-1]
		var never []string
		for i, n := range b.Arms {
			switch {
			case n > 0 || b.Hits == 0:
			case i == len(b.Arms)-1:
				never = append(never, "else was never taken")
			case i == 0:
				never = append(never, "never true")
			default:
				never = append(never, fmt.Sprintf("elseif %d was never true", i))
			}
		}
		if len(never) > 0 {
			p.Note = strings.Join(never, ", ")
			if p.Class == "ran" {
				p.Class = "part"
			}
		}
	}
}
