//go:build !linux

package httpclient

import "errors"

// Other systems read and write sockets through package net.
const hasRaw = false

func rawRead(uintptr, []byte) (int, error)  { return 0, errors.ErrUnsupported }
func rawWrite(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
