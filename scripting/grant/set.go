package grant

// Set is what a block grants.
type Set struct {
	URLs     []URL
	Env      []Env
	Files    []File
	Commands []Command
	// AnyFile and AnyCommand grant all files and programs, which no block does: it
	// is for tests.
	AnyFile, AnyCommand bool
}
