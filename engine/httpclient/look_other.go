//go:build !unix

package httpclient

var readNow func(file uintptr, buf []byte) (int, error)
