package server

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/weir-run/weir/engine/clock"
)

// Door accepts connections on one address, for who speaks something else than
// HTTP on them. Its methods are safe for concurrent use.
type Door struct {
	d     *door
	slots *slots
}

// OpenDoor opens a TCP address. setting is what sets it, as in CannotListen.
func OpenDoor(address, setting string) (*Door, error) {
	d, err := open(address)
	if err != nil {
		return nil, CannotListen(address, setting, err)
	}
	return &Door{d, newSlots()}, nil
}

// CannotListen says why an address could not be opened and what to do. setting
// is what sets the address: "address in the block listener of x.y.z (file:line)".
func CannotListen(address, setting string, err error) error {
	if inUse(err) {
		return fmt.Errorf("cannot listen on %s: the address is already in use by another process or another block; stop that, or change %s", address, setting)
	}
	return fmt.Errorf("cannot listen on %s: %w; %s sets this address", address, err, setting)
}

// Accept calls hand with every connection until the door is closed; hand does
// not block, and whoever has the connection closes it. failed is told of errors,
// the first of several only, and of their end with nil.
func (d *Door) Accept(c clock.Clock, hand func(net.Conn), failed func(error)) {
	d.d.accept(c, d.slots, hand, failed)
}

// Addr is where it accepts.
func (d *Door) Addr() net.Addr { return d.d.Addr() }

// Connections returns how many there are.
func (d *Door) Connections() int {
	d.slots.mu.Lock()
	defer d.slots.mu.Unlock()
	return d.slots.open
}

// Close makes Accept return. Connections stay open.
func (d *Door) Close() error { return d.d.Close() }

// Load reads the files of the block, which is valid, and returns what
// connections need that no protocol is negotiated on.
func (t *TLS) Load() (*tls.Config, error) {
	c, err := t.load(false)
	if err != nil {
		return nil, err
	}
	c.NextProtos = nil
	return c, nil
}

// Files returns the files that Load reads, absolute.
func (t *TLS) Files() []string { return t.files() }
