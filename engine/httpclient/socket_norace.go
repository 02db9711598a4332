//go:build linux && !race

package httpclient

func raceAcquire(uintptr) {}
func raceRelease()        {}
