package scripting

import "strings"

// DefinitionKeys are the keys of a kind's definition, in the order of the manual.
func DefinitionKeys(kind ComponentKind) []string {
	keys := kind.keys()
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// ArgOptions are the options of weir.arg.<kind>.
func ArgOptions(kind ArgKind) []string { return strings.Split((&Arg{Kind: kind}).knownOptions(), ", ") }
