package state

// syncDir does nothing: the file system journals names itself.
func syncDir(string) error { return nil }
