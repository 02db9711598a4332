//go:build !linux || race

package httpclient

// Elsewhere sockets are read and written by package net, and with the race
// detector, which knows from it what happens before what.
var rawRead, rawWrite func(fd uintptr, buf []byte) (int, error)
