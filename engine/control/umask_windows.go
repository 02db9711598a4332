package control

// narrowUmask does nothing: a socket has the permissions of its directory.
func narrowUmask() (restore func()) { return func() {} }
