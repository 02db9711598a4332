package component

// Task is a Component that completes a piece of work each time its arguments
// change, such as writing a file.
type Task interface {
	// Finished reports whether the work for the current arguments was attempted. err
	// is why it failed. It is called from any goroutine and must not block.
	Finished() (done bool, err error)
}
