package unix

// Flags returns the flags for the arguments.
func Flags(a *Arguments) []string { return a.flags() }

// Collectors returns the collectors that the arguments select.
func Collectors(a *Arguments, available map[string]bool) (run, unknown []string) {
	return a.collectors(available)
}
