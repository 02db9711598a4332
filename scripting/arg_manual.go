package scripting

import (
	"fmt"
	"strings"
)

// Manual returns the text of the manual for an argument or export.
func (a *Arg) Manual() string {
	switch a.innermost().Kind {
	case ArgEnum:
		return strings.TrimSpace(a.Doc + " One of " + quoteList(a.innermost().Values) + ".")
	case ArgRegexp:
		return strings.TrimSpace(a.Doc + " A regular expression (RE2).")
	}
	return a.Doc
}

// innermost returns the innermost element type of a list or map.
func (a *Arg) innermost() *Arg {
	for a.Of != nil {
		a = a.Of
	}
	return a
}

// ConfigExample returns an example value of the argument in config syntax.
func (a *Arg) ConfigExample() string {
	switch a.Kind {
	case ArgInt, ArgNumber:
		return "1"
	case ArgBool:
		return "true"
	case ArgDuration:
		return `"30s"`
	case ArgSize:
		return `"8MiB"`
	case ArgList:
		return "[" + a.Of.ConfigExample() + "]"
	case ArgMap:
		return "{ key = " + a.Of.ConfigExample() + " }"
	case ArgEnum:
		return fmt.Sprintf("%q", a.Values[0])
	case ArgTargets:
		return `[{ __address__ = "localhost:9090" }]`
	case ArgRegexp:
		return `".+"`
	}
	return `"…"`
}
