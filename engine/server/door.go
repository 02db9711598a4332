package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/weir-run/weir/engine/clock"
)

// Door accepts connections on one address, for protocols other than HTTP. Its
// methods are safe for concurrent use.
type Door struct {
	d     *door
	slots *slots
}

// OpenDoor opens a TCP address. setting names the setting, as in CannotListen.
func OpenDoor(address, setting string) (*Door, error) {
	d, err := open(address)
	if err != nil {
		return nil, CannotListen(address, setting, err)
	}
	return &Door{d, newSlots()}, nil
}

// ErrInUse is wrapped by the error of CannotListen if the address is in use.
var ErrInUse = errors.New("the address is already in use")

// CannotListen returns an error that says why an address could not be opened
// and what to do. setting names the setting: "address in the block listener of
// x.y.z (file:line)".
func CannotListen(address, setting string, err error) error {
	if inUse(err) {
		return fmt.Errorf("cannot listen on %s: %w by another process or another block; stop that, or change %s", address, ErrInUse, setting)
	}
	return fmt.Errorf("cannot listen on %s: %w; %s sets this address", address, err, setting)
}

// Accept calls hand with every connection until the door is closed. hand must
// not block, and its receiver closes the connection. failed is called with the
// first of several consecutive errors, and with nil when they end.
func (d *Door) Accept(c clock.Clock, hand func(net.Conn), failed func(error)) {
	d.d.accept(c, d.slots, hand, failed)
}

// Addr returns its address.
func (d *Door) Addr() net.Addr { return d.d.Addr() }

// Connections returns the number of open connections.
func (d *Door) Connections() int {
	d.slots.mu.Lock()
	defer d.slots.mu.Unlock()
	return d.slots.open
}

// Close makes Accept return. Connections stay open.
func (d *Door) Close() error { return d.d.Close() }

// Load reads the files of a valid block, and returns a config for connections
// without protocol negotiation.
func (t *TLS) Load() (*tls.Config, error) {
	c, err := t.load(false)
	if err != nil {
		return nil, err
	}
	c.NextProtos = nil
	return c, nil
}

// Files returns the absolute paths of the files that Load reads.
func (t *TLS) Files() []string { return t.files() }
