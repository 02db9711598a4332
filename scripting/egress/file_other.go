//go:build !unix

package egress

const openFlags = 0
