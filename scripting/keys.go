package scripting

import "strings"

// DefinitionKeys are the keys of weir.transform, in the order of the manual.
func DefinitionKeys() []string {
	names := make([]string, len(transformKeys))
	for i, k := range transformKeys {
		names[i] = k.name
	}
	return names
}

// ArgOptions are the options of weir.arg.<kind>.
func ArgOptions(kind ArgKind) []string { return strings.Split((&Arg{Kind: kind}).knownOptions(), ", ") }
