package grant

// Set contains the grants of a block.
type Set struct {
	URLs     []URL
	Env      []Env
	Files    []File
	Commands []Command
	// AnyFile and AnyCommand grant all files and programs. They are for tests; no
	// block sets them.
	AnyFile, AnyCommand bool
}
