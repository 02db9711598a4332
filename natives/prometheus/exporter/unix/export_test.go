package unix

// Flags are the flags that arguments become.
func Flags(a *Arguments) []string { return a.flags() }

// Collectors returns the collectors that arguments choose.
func Collectors(a *Arguments, available map[string]bool) (run, unknown []string) {
	return a.collectors(available)
}
