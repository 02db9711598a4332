// Package protocol is the protocol between weir and its plugins, generated from
// plugin.proto. The specification is docs/plugin-protocol.md.
//
// To generate the code, install protoc (Debian: protobuf-compiler).
package protocol

//go:generate sh generate.sh
