package state

// syncDir does nothing: the system keeps names itself.
func syncDir(string) error { return nil }
