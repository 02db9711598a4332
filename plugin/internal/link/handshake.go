package link

import goplugin "github.com/hashicorp/go-plugin"

// Handshake is the handshake of go-plugin. The cookie prevents that somebody runs a
// plugin by mistake; it is not a secret.
var Handshake = goplugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "WEIR_PLUGIN",
	MagicCookieValue: "b0b4a6f2-weir",
}

// Name is the name of the service in go-plugin's plugin set.
const Name = "weir"

// MaxMessage is the maximum size of a message in bytes.
const MaxMessage = 256 << 20
